//===- CheckMemory.h - Whether ranks find room on their devices -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_CHECKMEMORY_H
#define AX_RUNTIME_CHECKMEMORY_H

#include "RankContext.h"

namespace ax::rt {

/// A RunFailed error where a device has less memory free than its ranks will
/// allocate; it says what for. `hasStates`: mutable states are there already,
/// as prepared ones are. It tells devices what they have to spare. Those that
/// work on the host's memory are not asked, since of that much is files', which
/// are read from there.
llvm::Error checkMemory(llvm::ArrayRef<RankContext> ranks, bool hasStates);

} // namespace ax::rt

#endif // AX_RUNTIME_CHECKMEMORY_H
