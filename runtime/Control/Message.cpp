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

std::vector<std::string> packRuns(llvm::ArrayRef<std::string> values) {
  std::vector<std::string> runs;
  for (size_t first = 0, next = 0; first < values.size(); first = next) {
    while (next < values.size() && values[next] == values[first])
      ++next;
    runs.push_back(std::to_string(next - first));
    runs.push_back(values[first]);
  }
  return runs;
}

std::optional<std::vector<std::string>>
unpackRuns(llvm::ArrayRef<std::string> runs, size_t count) {
  std::vector<std::string> values;
  for (; runs.size() >= 2; runs = runs.drop_front(2)) {
    size_t times;
    if (llvm::StringRef(runs[0]).getAsInteger(10, times) ||
        times > count - values.size())
      return std::nullopt;
    values.insert(values.end(), times, runs[1]);
  }
  if (!runs.empty() || values.size() != count)
    return std::nullopt;
  return values;
}

} // namespace ax::rt::control
