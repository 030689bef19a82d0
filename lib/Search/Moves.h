//===- Moves.h - Which strategies are beside one ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_SEARCH_MOVES_H
#define AX_LIB_SEARCH_MOVES_H

#include "ax/Search/Search.h"

namespace ax::search {

/// Returns the strategies of as many ranks that differ from `strategy` in one
/// thing that is not fixed: a prime factor of an axis that another one gets,
/// twice or half as many slices, the next kind of ZeRO, ...
std::vector<Strategy> findNeighbours(const Strategy &strategy,
                                     const Fixed &fixed);

/// Returns where to begin: of all ways to split `devices` into data, tensor
/// (columns) and pipeline parallel ranks one group each, whose members differ
/// in how many slices a pipeline has, the most first. Empty where fixed sizes
/// do not divide the ranks.
std::vector<std::vector<Strategy>>
findBeginnings(const Strategy &strategy, const Fixed &fixed, int64_t devices);

} // namespace ax::search

#endif // AX_LIB_SEARCH_MOVES_H
