//===- ControlAddress.cpp - How process 0 is found ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/Control.h"
#include "ax/Support/Error.h"
#include "ax/Support/WireFormat.h"

#include <limits>

namespace ax::rt {

namespace {
enum Field : uint32_t { Host = 1, Port, Key };
} // namespace

char AloneError::ID;

AloneError::AloneError(const ErrorDescription &why)
    : ErrorInfo(why.code, why.message) {}

std::string ControlAddress::encode() const {
  std::string out;
  for (const std::string &host : hosts)
    appendBytesField(out, Host, host);
  appendVarintField(out, Port, port);
  appendBytesField(out, Key, key);
  return out;
}

llvm::Expected<ControlAddress> ControlAddress::decode(llvm::StringRef bytes) {
  WireReader reader({bytes.bytes_begin(), bytes.bytes_end()});
  ControlAddress address;
  WireField field;
  bool isKnown = true;
  while (reader.read(field)) {
    if (field.number == Host && field.type == WireType::Bytes)
      address.hosts.push_back(field.text().str());
    else if (field.number == Port && field.type == WireType::Varint &&
             field.value <= std::numeric_limits<uint16_t>::max())
      address.port = static_cast<uint16_t>(field.value);
    else if (field.number == Key && field.type == WireType::Bytes)
      address.key = field.text().str();
    else
      isKnown = false;
  }
  if (!isKnown || reader.isMalformed() || address.hosts.empty() ||
      !address.port || address.key.empty())
    return makeError(ExitCode::Internal,
                     "what the launcher brought from process 0 is no address "
                     "of a control channel");
  return address;
}

} // namespace ax::rt
