//===- LeftThreads.cpp - Threads that hang and were left behind -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/LeftThreads.h"

#include <atomic>

namespace ax::rt {

static std::atomic<bool> areThreadsLeft{false};

bool wereThreadsLeft() { return areThreadsLeft; }
void noteThreadsLeft() { areThreadsLeft = true; }

} // namespace ax::rt
