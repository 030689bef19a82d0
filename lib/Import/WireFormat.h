//===- WireFormat.h - Walking protobuf bytes without parsing ----*- C++ -*-===//
//
// Enough of protobuf's wire format to find and skip fields in place, so that
// gigabytes of weights are never copied.
//
//===----------------------------------------------------------------------===//
#ifndef AX_LIB_IMPORT_WIREFORMAT_H
#define AX_LIB_IMPORT_WIREFORMAT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>

namespace ax::import {

enum class WireType : uint8_t {
  Varint = 0,
  Fixed64 = 1,
  Bytes = 2,
  Fixed32 = 5
};

struct WireField {
  uint32_t number = 0;
  WireType type = WireType::Varint;
  /// Varint, Fixed32 and Fixed64: the value.
  uint64_t value = 0;
  /// Bytes: the contents.
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
  bool isMalformed() const { return malformed; }

private:
  bool readVarint(uint64_t &value);
  bool fail() {
    malformed = true;
    return false;
  }

  const uint8_t *next;
  const uint8_t *end;
  bool malformed = false;
};

/// Appends a length-delimited field.
void appendBytesField(std::string &out, uint32_t number,
                      llvm::StringRef contents);

} // namespace ax::import

#endif // AX_LIB_IMPORT_WIREFORMAT_H
