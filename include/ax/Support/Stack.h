//===- Stack.h - Room for recursion -----------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_SUPPORT_STACK_H
#define AX_SUPPORT_STACK_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace ax {

/// Calls `body` on a thread with a stack of 8 MiB or more, which all threads
/// have from then on, whatever `ulimit -s` says: deep expressions and kernels'
/// buffers need room, and running out of it is a crash. Gives body's result, or
/// prints an error and gives its exit code where there is no memory.
int runWithLargeStacks(llvm::StringRef tool, llvm::function_ref<int()> body);

/// Calls `body` likewise, and changes nothing of other threads: for a library,
/// whose process is another's.
llvm::Error callWithLargeStack(llvm::function_ref<llvm::Error()> body);

} // namespace ax

#endif // AX_SUPPORT_STACK_H
