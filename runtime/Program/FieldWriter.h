//===- FieldWriter.h - Fields as protobuf's bytes ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_PROGRAM_FIELDWRITER_H
#define AX_RUNTIME_PROGRAM_FIELDWRITER_H

#include "Fields.h"
#include "ax/Support/WireFormat.h"

#include "llvm/ADT/StringExtras.h"

#include <cstring>

namespace ax::rt::fields {

/// An archive (Fields.h) that appends to `out`.
class FieldWriter {
public:
  explicit FieldWriter(std::string &out) : out(out) {}

  template <typename T>
  void operator()(uint32_t number, T &value) {
    write(number, value);
  }

private:
  template <typename T>
  void write(uint32_t number, T &value) {
    if constexpr (std::is_same_v<T, bool> || std::is_enum_v<T>)
      appendVarintField(out, number, static_cast<uint64_t>(value));
    else if constexpr (std::is_integral_v<T>)
      appendVarintField(out, number, toZigZag(static_cast<int64_t>(value)));
    else
      appendBytesField(out, number, messageOf(value));
  }
  void write(uint32_t number, double &value) {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    appendFixed64Field(out, number, bits);
  }
  void write(uint32_t number, std::string &value) {
    appendBytesField(out, number, value);
  }
  void write(uint32_t number, std::vector<uint8_t> &value) {
    appendBytesField(out, number, llvm::toStringRef(value));
  }
  template <typename T>
  void write(uint32_t number, std::vector<T> &values) {
    if constexpr (std::is_integral_v<T>) {
      std::string packed;
      for (T value : values)
        appendVarint(packed, toZigZag(value));
      appendBytesField(out, number, packed);
    } else {
      for (T &value : values)
        write(number, value);
    }
  }
  template <typename T>
  void write(uint32_t number, std::vector<std::vector<T>> &values) {
    for (std::vector<T> &value : values) {
      std::string message;
      FieldWriter writer(message);
      writer(1, value);
      appendBytesField(out, number, message);
    }
  }
  void write(uint32_t number, std::map<std::string, std::string> &values) {
    for (const auto &[key, value] : values) {
      std::string entry;
      appendBytesField(entry, 1, key);
      appendBytesField(entry, 2, value);
      appendBytesField(out, number, entry);
    }
  }
  template <typename T>
  void write(uint32_t number, std::optional<T> &value) {
    if (value)
      write(number, *value);
  }
  template <typename T>
  void write(uint32_t number, std::shared_ptr<T> &value) {
    write(number, *value);
  }
  template <typename... Ts>
  void write(uint32_t number, std::variant<Ts...> &value) {
    uint32_t chosen = number + static_cast<uint32_t>(value.index());
    std::visit([&](auto &each) { write(chosen, each); }, value);
  }
  void write(uint32_t number, sharding::Mesh &mesh) {
    std::vector<sharding::Axis> axes = mesh.getAxes();
    std::string message;
    FieldWriter writer(message);
    writer(1, axes);
    appendBytesField(out, number, message);
  }
  void write(uint32_t number, HostTensor &tensor) {
    DType dtype = tensor.getType();
    Shape shape = tensor.getShape();
    std::string message;
    FieldWriter writer(message);
    writer(1, dtype), writer(2, shape);
    appendBytesField(message, 3, llvm::toStringRef(tensor.rawBytes()));
    appendBytesField(out, number, message);
  }

  template <typename T>
  static std::string messageOf(T &value) {
    std::string message;
    FieldWriter writer(message);
    visit(writer, value);
    return message;
  }

  std::string &out;
};

} // namespace ax::rt::fields

#endif // AX_RUNTIME_PROGRAM_FIELDWRITER_H
