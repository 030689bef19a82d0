//===- NcclSplits.cpp - Which groups one split makes ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "NcclSplits.h"

#include "llvm/ADT/STLExtras.h"

#include <set>

namespace ax::rt::nccl {

bool isWhole(llvm::ArrayRef<int32_t> ranks, int32_t numRanks) {
  return static_cast<int32_t>(ranks.size()) == numRanks &&
         llvm::is_sorted(ranks);
}

std::vector<SplitGroups> findSplits(llvm::ArrayRef<std::vector<int32_t>> groups,
                                    int32_t numRanks) {
  std::vector<SplitGroups> splits;
  std::vector<std::set<int32_t>> ranksOf;
  std::set<std::vector<int32_t>> known;
  for (const std::vector<int32_t> &group : groups) {
    if (group.size() < 2 || isWhole(group, numRanks) ||
        !known.insert(group).second)
      continue;
    size_t at = 0;
    while (at < splits.size() &&
           llvm::any_of(
               group, [&](int32_t rank) { return ranksOf[at].count(rank); }))
      ++at;
    if (at == splits.size()) {
      splits.emplace_back();
      ranksOf.emplace_back();
    }
    splits[at].push_back(group);
    ranksOf[at].insert(group.begin(), group.end());
  }
  return splits;
}

} // namespace ax::rt::nccl
