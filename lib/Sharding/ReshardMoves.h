//===- ReshardMoves.h - Where axes can go, remembered -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a step can make of one dimension depends on this dimension, on the axes
// that move and on how the target has it, whatever the rest of the layout. So
// it is computed once for all searches, and a search only combines numbers.
//
//===----------------------------------------------------------------------===//
#ifndef AX_LIB_SHARDING_RESHARDMOVES_H
#define AX_LIB_SHARDING_RESHARDMOVES_H

#include "LayoutTable.h"

namespace ax::sharding::detail {

/// Axes that may move together: in the order in which the layout has them, and
/// as the sorted set that a step names.
struct Movable {
  AxesId axes, set;
};

/// What a permute makes of some dimensions, and over which axes.
struct Permuted {
  std::vector<DimId> dims;
  AxesId set;
};

class ReshardMoves {
public:
  explicit ReshardMoves(LayoutTable &table) : table(table) {}

  /// Every non-empty subset of the first 8 of `atoms` that lie in `axes`, in a
  /// fixed order.
  const std::vector<Movable> &movables(AxesId axes, AxesId atoms);

  /// What `base` can become when `axes` split it, too: where `wanted` has them,
  /// or at either end of any digit counted locally, in any order.
  const std::vector<DimId> &insertions(DimId base, AxesId axes, DimId wanted);

  /// The axes of the permute that makes `to` of `from`; nothing when none does.
  std::optional<AxesId> permutes(const std::vector<DimId> &from,
                                 const std::vector<DimId> &to);

  /// The permutes of `dims`: names of their pieces are dealt anew among the
  /// atoms that they have and those that are unused. All ways of up to 4 atoms;
  /// of more, every exchange of two.
  const std::vector<Permuted> &permutations(const std::vector<DimId> &dims,
                                            AxesId unused, AxesId atoms);

  /// Returns both sets as one, sorted.
  AxesId unite(AxesId a, AxesId b);

private:
  AxesId atomsIn(AxesId axes, AxesId atoms);
  std::vector<DimId> findInsertions(DimId base, AxesId axes, DimId wanted);
  std::vector<Permuted> findPermutations(const std::vector<DimId> &dims,
                                         AxesId unused, AxesId atoms);
  std::optional<AxesId> findRenamed(DimId from, DimId to);

  LayoutTable &table;
  PairMemo<std::vector<Movable>> subsets;
  PairMemo<AxesId> inside, unions;
  PairMemo<std::optional<AxesId>> renamed;
  /// Numbers of pairs of axes and wanted dimensions.
  PairMemo<int> targets;
  int numTargets = 0;
  PairMemo<std::vector<DimId>> inserted;
  std::unordered_map<std::vector<int>, std::vector<Permuted>, HashOfNumbers>
      permuted;
  std::vector<int> key;
};

} // namespace ax::sharding::detail

#endif // AX_LIB_SHARDING_RESHARDMOVES_H
