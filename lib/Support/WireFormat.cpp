//===- WireFormat.cpp - Protobuf's bytes without protobuf -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Support/WireFormat.h"

using namespace ax;

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
  default: // groups, which nobody writes any more
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

bool ax::readPacked(llvm::ArrayRef<uint8_t> bytes,
                    std::vector<uint64_t> &values) {
  WireReader reader(bytes);
  uint64_t value;
  while (!reader.isAtEnd() && reader.readVarint(value))
    values.push_back(value);
  return !reader.isMalformed();
}

void ax::appendVarint(std::string &out, uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

static void appendTag(std::string &out, uint32_t number, WireType type) {
  appendVarint(out, (static_cast<uint64_t>(number) << 3) |
                        static_cast<uint64_t>(type));
}

void ax::appendVarintField(std::string &out, uint32_t number, uint64_t value) {
  appendTag(out, number, WireType::Varint);
  appendVarint(out, value);
}

void ax::appendFixed64Field(std::string &out, uint32_t number, uint64_t value) {
  appendTag(out, number, WireType::Fixed64);
  for (int byte = 0; byte < 8; ++byte)
    out.push_back(static_cast<char>(value >> (8 * byte)));
}

void ax::appendBytesField(std::string &out, uint32_t number,
                          llvm::StringRef contents) {
  appendTag(out, number, WireType::Bytes);
  appendVarint(out, contents.size());
  out.append(contents.data(), contents.size());
}
