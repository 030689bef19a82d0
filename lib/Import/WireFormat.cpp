//===- WireFormat.cpp - Walking protobuf bytes without parsing ------------===//

#include "WireFormat.h"

using namespace ax::import;

bool WireReader::readVarint(uint64_t &value) {
  value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (next == end)
      return fail();
    uint8_t byte = *next++;
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (!(byte & 0x80))
      return true;
  }
  return fail();
}

bool WireReader::read(WireField &field) {
  if (malformed || next == end)
    return false;
  const uint8_t *begin = next;
  uint64_t tag;
  if (!readVarint(tag))
    return false;
  uint64_t number = tag >> 3;
  if (number == 0 || number > 0x1fffffff)
    return fail();
  field.number = static_cast<uint32_t>(number);
  field.type = static_cast<WireType>(tag & 7);
  field.value = 0;
  field.bytes = {};
  uint64_t size = 0;
  switch (field.type) {
  case WireType::Varint:
    if (!readVarint(field.value))
      return false;
    break;
  case WireType::Fixed64:
    size = 8;
    break;
  case WireType::Fixed32:
    size = 4;
    break;
  case WireType::Bytes:
    if (!readVarint(size))
      return false;
    break;
  default: // groups, which ONNX never had
    return fail();
  }
  if (size > static_cast<uint64_t>(end - next))
    return fail();
  field.bytes = {next, static_cast<size_t>(size)};
  if (field.type == WireType::Fixed32 || field.type == WireType::Fixed64)
    for (size_t i = 0; i < size; ++i)
      field.value |= static_cast<uint64_t>(next[i]) << (8 * i);
  next += size;
  field.whole = {begin, static_cast<size_t>(next - begin)};
  return true;
}

static void appendVarint(std::string &out, uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

void ax::import::appendBytesField(std::string &out, uint32_t number,
                                  llvm::StringRef contents) {
  appendVarint(out, (static_cast<uint64_t>(number) << 3) |
                        static_cast<uint64_t>(WireType::Bytes));
  appendVarint(out, contents.size());
  out.append(contents.data(), contents.size());
}
