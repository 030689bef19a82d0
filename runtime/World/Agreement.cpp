//===- Agreement.cpp - What all processes fail with -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/Agreement.h"

#include "ax/Support/Error.h"

namespace ax::rt {

std::string describePlace(const ProcessPlace &place) {
  return "rank " + std::to_string(place.process) + " on host '" + place.host +
         "'";
}

std::string encode(llvm::Expected<std::string> result) {
  ErrorDescription found = describeError(result.takeError());
  return std::to_string(static_cast<int>(found.code)) + " " +
         (result ? *result : found.message);
}

llvm::Expected<std::string> decode(llvm::StringRef text) {
  auto [number, rest] = text.split(' ');
  int code;
  if (number.getAsInteger(10, code) || code < 0)
    return makeError(ExitCode::RunFailed,
                     "another process has sent what it cannot have meant");
  if (code == static_cast<int>(ExitCode::Success))
    return rest.str();
  return makeError(static_cast<ExitCode>(code), rest);
}

llvm::Expected<std::string>
share(World &world, llvm::StringRef what,
      llvm::function_ref<llvm::Expected<std::string>()> fn) {
  auto text = world.broadcast(what, world.isFirst() ? encode(fn()) : "");
  if (!text)
    return text.takeError();
  return decode(*text);
}

llvm::Error agree(World &world, llvm::StringRef what, llvm::Error mine) {
  if (world.isAlone())
    return mine;
  std::string text =
      mine
          ? encode(addContext(std::move(mine), describePlace(world.getPlace())))
          : encode("");
  auto all = world.allGather(what, std::move(text));
  if (!all)
    return all.takeError();
  for (const std::string &each : *all)
    if (auto found = decode(each); !found)
      return found.takeError();
  return llvm::Error::success();
}

} // namespace ax::rt
