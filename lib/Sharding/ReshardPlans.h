//===- ReshardPlans.h - Planned reshardings, remembered ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_SHARDING_RESHARDPLANS_H
#define AX_LIB_SHARDING_RESHARDPLANS_H

#include "ReshardMoves.h"
#include "ReshardPrice.h"

namespace ax::sharding::detail {

struct PlannedReshard {
  ReshardPlan plan;
  /// The price of all steps together.
  Price price;
};

/// What trees of reshardings cost (ReshardTree.cpp), by numbers that say all
/// that they depend on.
struct TreePrices {
  std::unordered_map<std::vector<int>, double, HashOfNumbers> seconds;
  std::vector<int> key;
};

/// What Resharder knows, by numbers of layouts.
class ReshardPlans {
public:
  ReshardPlans(const Mesh &mesh, CostFn cost)
      : table(mesh), moves(table), prices(table, std::move(cost)) {}

  LayoutTable table;
  TreePrices trees;

  /// Returns what Resharder::plan does. It stays where it is.
  const PlannedReshard &plan(LayoutId from, LayoutId to,
                             ElementBytes elementBytes);

private:
  double secondsOf(const Step &step, const Layout &from,
                   ElementBytes elementBytes);
  Price priceOf(const std::vector<Step> &steps, const Layout &from,
                ElementBytes elementBytes);
  ReshardPlan make(LayoutId from, LayoutId to, ElementBytes elementBytes);

  ReshardMoves moves;
  StepPrices prices;
  struct OfWidth {
    ElementBytes bytes;
    PairMemo<PlannedReshard> plans;
  };
  /// There are few widths of elements.
  std::deque<OfWidth> widths;
};

} // namespace ax::sharding::detail

#endif // AX_LIB_SHARDING_RESHARDPLANS_H
