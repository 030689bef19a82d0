//===- Flush.cpp - What a log has is in its file --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Flush.h"

#include "ax/Support/Error.h"

llvm::Error ax::flush(llvm::raw_fd_ostream &os, const std::string &path) {
  os.flush();
  if (!os.has_error())
    return llvm::Error::success();
  std::string fault = os.error().message();
  os.clear_error();
  return makeError(ExitCode::InputOutput,
                   "cannot write '" + path + "': " + fault);
}
