//===- FieldReader.h - Fields out of protobuf's bytes -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_PROGRAM_FIELDREADER_H
#define AX_RUNTIME_PROGRAM_FIELDREADER_H

#include "Fields.h"
#include "ax/Support/WireFormat.h"

#include <cstring>

namespace ax::rt::fields {

/// An archive (Fields.h) that sets the field that has been read. What is not
/// given keeps its default; lists grow by each field of theirs. Nothing that
/// the bytes say is believed: a value out of range, of another wire type, or of
/// a number that no field has makes the whole unsound.
class FieldReader {
public:
  /// Sets what the message has; false when it is unsound.
  template <typename T>
  static bool readMessage(llvm::ArrayRef<uint8_t> bytes, T &value) {
    return readFields(bytes,
                      [&](FieldReader &reader) { visit(reader, value); });
  }

  template <typename T>
  void operator()(uint32_t number, T &value) {
    if (number == field.number)
      isRead = read(value);
  }
  template <typename... Ts>
  void operator()(uint32_t number, std::variant<Ts...> &value) {
    if (field.number >= number && field.number < number + sizeof...(Ts))
      isRead = readAlternative<0>(field.number - number, value);
  }

private:
  explicit FieldReader(const WireField &field) : field(field) {}

  template <typename Fn>
  static bool readFields(llvm::ArrayRef<uint8_t> bytes, Fn &&visitAll) {
    WireReader wire(bytes);
    WireField field;
    while (wire.read(field)) {
      FieldReader reader(field);
      visitAll(reader);
      if (!reader.isRead)
        return false;
    }
    return !wire.isMalformed();
  }

  bool is(WireType type) const { return field.type == type; }

  template <typename T>
  static bool setInteger(uint64_t bits, T &value) {
    int64_t number = fromZigZag(bits);
    value = static_cast<T>(number);
    return static_cast<int64_t>(value) == number;
  }

  template <typename T>
  bool read(T &value) {
    if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(field.value);
      return is(WireType::Varint) &&
             field.value < static_cast<uint64_t>(count<T>);
    } else if constexpr (std::is_integral_v<T>) {
      return is(WireType::Varint) && setInteger(field.value, value);
    } else {
      return is(WireType::Bytes) && readMessage(field.bytes, value);
    }
  }
  bool read(bool &value) {
    value = field.value != 0;
    return is(WireType::Varint) && field.value <= 1;
  }
  bool read(double &value) {
    std::memcpy(&value, &field.value, sizeof(value));
    return is(WireType::Fixed64);
  }
  bool read(std::string &value) {
    value = field.text().str();
    return is(WireType::Bytes);
  }
  bool read(std::vector<uint8_t> &value) {
    value.assign(field.bytes.begin(), field.bytes.end());
    return is(WireType::Bytes);
  }
  template <typename T>
  bool read(std::vector<T> &values) {
    if constexpr (std::is_integral_v<T>) {
      std::vector<uint64_t> packed;
      if (!is(WireType::Bytes) || !readPacked(field.bytes, packed))
        return false;
      values.resize(packed.size());
      for (size_t i = 0; i < packed.size(); ++i)
        if (!setInteger(packed[i], values[i]))
          return false;
      return true;
    } else {
      return read(values.emplace_back());
    }
  }
  template <typename T>
  bool read(std::vector<std::vector<T>> &values) {
    return is(WireType::Bytes) &&
           readFields(field.bytes,
                      [&, &value = values.emplace_back()](FieldReader &reader) {
                        reader(1, value);
                      });
  }
  bool read(std::map<std::string, std::string> &values) {
    std::string key, value;
    bool isSound = is(WireType::Bytes) &&
                   readFields(field.bytes, [&](FieldReader &reader) {
                     reader(1, key), reader(2, value);
                   });
    return isSound && values.emplace(key, value).second;
  }
  template <typename T>
  bool read(std::optional<T> &value) {
    return read(value.emplace());
  }
  template <typename T>
  bool read(std::shared_ptr<T> &value) {
    return read(*(value = std::make_shared<T>()));
  }
  template <size_t index, typename... Ts>
  bool readAlternative(uint32_t chosen, std::variant<Ts...> &value) {
    if constexpr (index == sizeof...(Ts)) {
      return false;
    } else {
      if (chosen == index)
        return read(value.template emplace<index>());
      return readAlternative<index + 1>(chosen, value);
    }
  }
  bool read(sharding::Mesh &mesh) {
    std::vector<sharding::Axis> axes;
    bool isSound =
        is(WireType::Bytes) &&
        readFields(field.bytes, [&](FieldReader &reader) { reader(1, axes); });
    mesh = sharding::Mesh(std::move(axes));
    return isSound;
  }
  bool read(HostTensor &tensor) {
    DType dtype = DType::F32;
    Shape shape;
    std::vector<uint8_t> bytes;
    if (!is(WireType::Bytes) ||
        !readFields(field.bytes, [&](FieldReader &reader) {
          reader(1, dtype), reader(2, shape), reader(3, bytes);
        }))
      return false;
    llvm::Expected<HostTensor> made =
        HostTensor::fromBytes(dtype, std::move(shape), bytes);
    if (!made) {
      llvm::consumeError(made.takeError());
      return false;
    }
    tensor = std::move(*made);
    return true;
  }

  const WireField &field;
  bool isRead = false;
};

} // namespace ax::rt::fields

#endif // AX_RUNTIME_PROGRAM_FIELDREADER_H
