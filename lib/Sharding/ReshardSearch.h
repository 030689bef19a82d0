//===- ReshardSearch.h - Shortest paths over layouts ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_SHARDING_RESHARDSEARCH_H
#define AX_LIB_SHARDING_RESHARDSEARCH_H

#include "ReshardMoves.h"
#include "ReshardPrice.h"

namespace ax::sharding::detail {

/// What searches share.
struct SearchTables {
  LayoutTable &table;
  ReshardMoves &moves;
  StepPrices &prices;
};

/// The cheapest path not dearer than `bound`; with very many layouts the
/// cheapest of those seen. Nothing when there is none. Dimensions and partial
/// axes that agree at both ends are left alone.
std::optional<std::vector<Step>> findPath(LayoutId from, LayoutId to,
                                          ElementBytes elementBytes,
                                          SearchTables tables, Price bound);

} // namespace ax::sharding::detail

#endif // AX_LIB_SHARDING_RESHARDSEARCH_H
