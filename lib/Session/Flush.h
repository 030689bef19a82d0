//===- Flush.h - What a log has is in its file ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_SESSION_FLUSH_H
#define AX_LIB_SESSION_FLUSH_H

#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

#include <string>

namespace ax {

/// Hands what was written to the system. Fails with InputOutput, naming `path`;
/// `os` may be written to again, with or without success.
llvm::Error flush(llvm::raw_fd_ostream &os, const std::string &path);

} // namespace ax

#endif // AX_LIB_SESSION_FLUSH_H
