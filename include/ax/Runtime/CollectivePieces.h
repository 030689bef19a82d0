//===- CollectivePieces.h - Which elements go where -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_COLLECTIVEPIECES_H
#define AX_RUNTIME_COLLECTIVEPIECES_H

#include "ax/Runtime/StridedCopy.h"

#include "ax/Runtime/Collective.h"

namespace ax::rt {

/// What one member reads of another's source, and where it goes in its own
/// destination.
struct CollectivePiece {
  int32_t peer = 0;
  StridedBox box;
};

struct CollectivePlan {
  /// The pieces that are copied; for ReduceScatter one, whose box is the same
  /// in every member's source. Empty for AllReduce.
  std::vector<CollectivePiece> pieces;
  /// Parts of the destination are in no piece and must become zero.
  bool zeroFirst = false;
};

/// The plan of member `me` of `members`.
CollectivePlan planCollective(const CollectiveSpec &spec, int32_t members,
                              int32_t me);

/// The elements [first, second) of an all-reduce's tensor of so many that
/// member `index` reduces, and writes for all: no two in one cache line.
std::pair<int64_t, int64_t> sliceOf(int64_t numElements, int32_t members,
                                    int32_t index);

} // namespace ax::rt

#endif // AX_RUNTIME_COLLECTIVEPIECES_H
