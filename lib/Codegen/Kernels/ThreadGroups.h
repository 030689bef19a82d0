//===- ThreadGroups.h - How many threads do an iteration --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_CODEGEN_KERNELS_THREADGROUPS_H
#define AX_CODEGEN_KERNELS_THREADGROUPS_H

#include "Nests.h"

#include "ax/Runtime/Program.h"

namespace ax::codegen {

inline constexpr int64_t warpThreads = 32, largestBlock = 1024;
/// About as many threads as a large card runs at the same time.
inline constexpr int64_t manyThreads = 1 << 18;
/// Fewer threads side by side would not read whole lines of memory.
inline constexpr int64_t fewNeighbours = 8;
/// Bytes that every card gives a block unasked, less what sums need of them.
inline constexpr int64_t mostShared = (48 << 10) - 1024;

/// Chooses who does one of so many iterations on a GPU, of nests of at most
/// `points` points, whose elements have up to `bytes` bytes.
///
/// An element is a thread's; a row a warp's, or a block's if it is long or
/// there are few, and the largest block's if it is very long: of those that
/// multiprocessors have then, a card's cache has room for all, so that who
/// reads a row again finds it there. Where neighbouring iterations read
/// neighbours (sums over leading dimensions), `columnLanes` is how many of
/// these a thread does, and else 0: a block has 8 to 32 such threads side by
/// side.
ThreadGroup chooseGroup(int64_t iterations, int64_t points, int64_t bytes,
                        int64_t columnLanes, int64_t scratchBytes);

/// The same for rows of so many accesses of 16 bytes.
ThreadGroup chooseGroupOfLanes(int64_t iterations, int64_t accesses);

/// Where the rows lie that a group keeps, and on how many threads it is
/// launched.
struct GroupLaunch {
  rt::LaunchShape shape;
  /// Of an iteration, in the memory that a block has; else it is the card's.
  int64_t sharedBytes = 0;
};

/// All of the scratch in the card's memory is to fit into it beside what the
/// program needs.
GroupLaunch launchOf(const KernelNests &nests);

} // namespace ax::codegen

#endif // AX_CODEGEN_KERNELS_THREADGROUPS_H
