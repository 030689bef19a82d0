//===- NcclSplits.h - Which groups one split makes --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All ranks of a communicator take part in each split of it (ncclCommSplit),
// which makes any number of groups that have no rank in common.
//
// Example: of four ranks in a mesh of 2x2 the groups {0, 1} {2, 3} {0, 2} {1,
// 3} are two splits, those of the rows and those of the columns.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_NCCL_NCCLSPLITS_H
#define AX_RUNTIME_NCCL_NCCLSPLITS_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <vector>

namespace ax::rt::nccl {

using SplitGroups = std::vector<std::vector<int32_t>>;

/// Returns the splits that make `groups`, each in the first one that has none
/// of its ranks: the same for all who give the same. A group counts once; those
/// of one rank, and of all of `numRanks` in their order, need none.
std::vector<SplitGroups> findSplits(llvm::ArrayRef<std::vector<int32_t>> groups,
                                    int32_t numRanks);

/// Whether these are all ranks, in their order.
bool isWhole(llvm::ArrayRef<int32_t> ranks, int32_t numRanks);

} // namespace ax::rt::nccl

#endif // AX_RUNTIME_NCCL_NCCLSPLITS_H
