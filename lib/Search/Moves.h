//===- Moves.h - Which strategies are beside one ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_SEARCH_MOVES_H
#define AX_LIB_SEARCH_MOVES_H

#include "ax/Search/Search.h"

namespace ax::search {

/// What there is to choose from.
struct Space {
  int64_t devices = 1;
  Fixed fixed;
  /// Samples of a batch, of which each slice has as many; 0: nobody knows.
  int64_t batch = 0;
  /// Tokens of a sample, that ranks may share; 0: there are none.
  int64_t sequence = 0;
};

/// Returns the strategies of as many ranks that differ from `strategy` in one
/// thing that is not fixed: a prime factor of an axis that another one gets,
/// twice or half as many slices, the next kind of ZeRO, a part more of the
/// model for each stage, ...
std::vector<Strategy> findNeighbours(const Strategy &strategy,
                                     const Space &space);

/// Returns where to begin: of all ways to split the ranks into data, tensor
/// (columns) and pipeline parallel ranks one group each, whose members differ
/// in how many slices a pipeline has, the most first. Empty where fixed sizes
/// do not divide the ranks.
std::vector<std::vector<Strategy>> findBeginnings(const Strategy &strategy,
                                                  const Space &space);

} // namespace ax::search

#endif // AX_LIB_SEARCH_MOVES_H
