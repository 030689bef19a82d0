//===- MessageTable.cpp - Who carries messages ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/MessageTable.h"

#include "ax/Runtime/MessageCommunicator.h"
#include "ax/Support/Error.h"

namespace ax::rt {

llvm::Error check(const AxMessageTable &carrier, int error,
                  const llvm::Twine &what) {
  if (!error)
    return llvm::Error::success();
  char text[512];
  carrier.describe(carrier.context, error, text, sizeof(text));
  return makeError(ExitCode::RunFailed,
                   what + ": " + carrier.name + ": " + text);
}

} // namespace ax::rt
