//===- Message.cpp - What goes over the control channel -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Message.h"

#include "ax/Support/WireFormat.h"

namespace ax::rt::control {

namespace {
enum Field : uint32_t { Kind = 1, Number, Detail, Name, Text, List };
} // namespace

std::string Message::encode() const {
  std::string out;
  appendVarintField(out, Kind, static_cast<uint64_t>(kind));
  appendVarintField(out, Number, number);
  appendVarintField(out, Detail, detail);
  appendBytesField(out, Name, name);
  appendBytesField(out, Text, text);
  for (const std::string &item : list)
    appendBytesField(out, List, item);
  return out;
}

std::optional<Message> Message::decode(llvm::StringRef bytes) {
  WireReader reader({bytes.bytes_begin(), bytes.bytes_end()});
  Message message;
  WireField field;
  bool hasKind = false;
  while (reader.read(field)) {
    bool isNumber = field.number == Kind || field.number == Number ||
                    field.number == Detail;
    if (field.type != (isNumber ? WireType::Varint : WireType::Bytes))
      return std::nullopt;
    switch (field.number) {
    case Kind:
      if (field.value > static_cast<uint64_t>(MessageKind::Goodbye))
        return std::nullopt;
      message.kind = static_cast<MessageKind>(field.value);
      hasKind = true;
      break;
    case Number:
      message.number = field.value;
      break;
    case Detail:
      message.detail = field.value;
      break;
    case Name:
      message.name = field.text().str();
      break;
    case Text:
      message.text = field.text().str();
      break;
    case List:
      message.list.push_back(field.text().str());
      break;
    default:
      return std::nullopt;
    }
  }
  if (reader.isMalformed() || !hasKind)
    return std::nullopt;
  return message;
}

} // namespace ax::rt::control
