//===- WireFormat.h - Protobuf's bytes without protobuf ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Enough of protobuf's wire format to find, skip and write fields in place, so
// that gigabytes of weights are never copied.
//
//===----------------------------------------------------------------------===//
#ifndef AX_SUPPORT_WIREFORMAT_H
#define AX_SUPPORT_WIREFORMAT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ax {

enum class WireType : uint8_t {
  Varint = 0,
  Fixed64 = 1,
  Bytes = 2,
  Fixed32 = 5
};

struct WireField {
  uint32_t number = 0;
  WireType type = WireType::Varint;
  /// The value of a Varint, Fixed32 or Fixed64.
  uint64_t value = 0;
  /// The contents of Bytes.
  llvm::ArrayRef<uint8_t> bytes;
  /// The field with its tag, to copy unchanged.
  llvm::ArrayRef<uint8_t> whole;

  llvm::StringRef text() const {
    return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
  }
};

/// Reads the fields of one message, one after another.
class WireReader {
public:
  explicit WireReader(llvm::ArrayRef<uint8_t> message)
      : next(message.begin()), end(message.end()) {}

  /// The next field; false at the end and when the bytes are malformed.
  bool read(WireField &field);
  /// The next number, without a tag; likewise.
  bool readVarint(uint64_t &value);
  bool isAtEnd() const { return next == end; }
  bool isMalformed() const { return malformed; }

private:
  bool fail() {
    malformed = true;
    return false;
  }

  const uint8_t *next;
  const uint8_t *end;
  bool malformed = false;
};

/// The numbers of a packed field. False when the bytes are malformed.
bool readPacked(llvm::ArrayRef<uint8_t> bytes, std::vector<uint64_t> &values);

/// Signed numbers as small ones whose least bit is the sign (sint64).
constexpr uint64_t toZigZag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^
         static_cast<uint64_t>(value >> 63);
}
constexpr int64_t fromZigZag(uint64_t value) {
  return static_cast<int64_t>((value >> 1) ^ (~(value & 1) + 1));
}

void appendVarint(std::string &out, uint64_t value);
void appendVarintField(std::string &out, uint32_t number, uint64_t value);
void appendFixed64Field(std::string &out, uint32_t number, uint64_t value);
/// Appends a length-delimited field.
void appendBytesField(std::string &out, uint32_t number,
                      llvm::StringRef contents);

} // namespace ax

#endif // AX_SUPPORT_WIREFORMAT_H
