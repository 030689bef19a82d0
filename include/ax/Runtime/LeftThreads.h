//===- LeftThreads.h - Threads that hang and were left behind ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_LEFTTHREADS_H
#define AX_RUNTIME_LEFTTHREADS_H

namespace ax::rt {

/// Whether some rank hung in a kernel, and its thread was left behind. It may
/// go on as long as the process does, which so is to end by `_exit`: what else
/// ends with a process, as libraries' code that was made at run time, would be
/// taken from under it.
bool wereThreadsLeft();
void noteThreadsLeft();

} // namespace ax::rt

#endif // AX_RUNTIME_LEFTTHREADS_H
