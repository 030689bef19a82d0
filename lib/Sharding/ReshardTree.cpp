//===- ReshardTree.cpp - What is resharded from what ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Uses that want one layout share its resharding, and a resharding may start
// from the result of another: reduced once, then sliced for nothing.
//
// This is a directed Steiner tree in the graph of layouts, where only what uses
// want may be a branching point. Up to three wants are tried in every order,
// each beginning at the cheapest that is there; of more, the one that is
// cheapest to add is added first, as in Prim's algorithm. There are rarely more
// than two.
//
// An example: a partial sum over col, which a norm wants as [{}, {}] and the
// residual behind it as [{col}, {}]. Each for itself would take an all-reduce
// and a reduce-scatter. In the order norm, residual the second starts from the
// result of the first: the all-reduce and a slice, which is free. In the order
// residual, norm it is a reduce-scatter and an all-gather of its result, which
// send as much, in two collectives: the first order is taken.
//
//===----------------------------------------------------------------------===//

#include "PropagateState.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace ax::sharding::detail {

namespace {

struct Want {
  LayoutId layout;
  std::vector<Use> uses;
};

class Builder {
public:
  Builder(State &state, int tensor)
      : state(state), table(state.table), tensor(tensor),
        info(state.graph.tensors[tensor]) {}

  Tree build() {
    const Use &producer = state.producers[tensor];
    if (producer.op >= 0)
      return grow(state.given(producer));
    if (state.sources[tensor])
      return grow(*state.sources[tensor]);
    return chooseSource();
  }

private:
  /// The layout of what comes from outside: as its uses want it; where they
  /// differ, what is cheapest, then smallest. Whole is always among what is
  /// tried then, as everything can be sliced from it.
  Tree chooseSource() {
    std::vector<LayoutId> candidates;
    auto add = [&](LayoutId layout) {
      layout = state.delivered(tensor, layout);
      if (std::find(candidates.begin(), candidates.end(), layout) ==
          candidates.end())
        candidates.push_back(layout);
    };
    std::vector<LayoutId> wanted;
    for (const Use &use : state.uses[tensor])
      if (use.op >= 0 && std::find(wanted.begin(), wanted.end(),
                                   state.wanted(use)) == wanted.end())
        wanted.push_back(state.wanted(use));
    for (LayoutId layout : wanted)
      add(layout);
    if (candidates.size() != 1)
      add(table.add(Layout::replicated(info.shape)));
    std::optional<Tree> best;
    auto keyOf = [&](const Tree &tree) {
      return std::tuple(picosecondsOf(tree.seconds), tree.collectives,
                        table.localBytes(tree.produced, info.elementBytes));
    };
    for (LayoutId candidate : candidates) {
      Tree tree = grow(candidate);
      if (!best || keyOf(tree) < keyOf(*best))
        best = std::move(tree);
    }
    return *best;
  }

  const PlannedReshard &plan(LayoutId from, LayoutId to) {
    return state.plans.plan(from, to, info.elementBytes);
  }

  /// Reduced as an output: whole, or scattered where that is cheaper and
  /// nobody else uses it. An output may have any layout, as who takes it puts
  /// the parts of ranks together; but all parts are to be equally large, hence
  /// digits.
  LayoutId outputLayout(LayoutId produced) {
    LayoutId best = table.reduced(produced);
    if (best == produced || state.uses[tensor].size() > 1)
      return best;
    const Layout &layout = table[produced].value;
    for (size_t d = 0; d < layout.dims.size(); ++d) {
      auto scattered =
          reduceScatter(layout, static_cast<int>(d), layout.partial);
      if (!scattered || !digitsOf(scattered->dims[d]))
        continue;
      LayoutId id = table.add(*scattered);
      if (plan(produced, id).plan.seconds < plan(produced, best).plan.seconds)
        best = id;
    }
    return best;
  }

  /// The reshardings of what is produced so. Where a pin delivers it otherwise,
  /// all uses start from what is delivered.
  Tree grow(LayoutId produced) {
    Tree tree;
    tree.produced = produced;
    LayoutId base = produced;
    int root = -1;
    if (state.isPinned(tensor)) {
      base = state.delivered(tensor, produced);
      if (base != produced) {
        attach(tree, {base, {}}, -1, produced);
        root = 0;
      }
    }
    std::vector<Want> wants;
    for (const Use &use : state.uses[tensor]) {
      LayoutId layout = use.op >= 0 ? state.wanted(use) : outputLayout(base);
      if (layout == base) {
        if (root >= 0)
          tree.branches[root].uses.push_back(use);
        continue;
      }
      auto same = std::find_if(wants.begin(), wants.end(), [&](const Want &w) {
        return w.layout == layout;
      });
      if (same == wants.end())
        wants.push_back({layout, {use}});
      else
        same->uses.push_back(use);
    }
    if (wants.empty())
      return tree;
    if (wants.size() > 3)
      return growGreedily(std::move(tree), root, base, std::move(wants));
    if (wants.size() == 1) {
      attach(tree, wants[0], cheapestSource(tree, root, base, wants[0]).first,
             base);
      return tree;
    }
    std::vector<size_t> order(wants.size());
    std::iota(order.begin(), order.end(), 0);
    std::optional<Tree> best;
    do {
      Tree candidate = tree;
      for (size_t i : order) {
        auto [source, price] = cheapestSource(candidate, root, base, wants[i]);
        attach(candidate, wants[i], source, base);
      }
      if (!best || priceOf(candidate) < priceOf(*best))
        best = std::move(candidate);
    } while (std::next_permutation(order.begin(), order.end()));
    return *best;
  }

  /// Grows a tree for four wants and more: their orders would be 24 and more.
  Tree growGreedily(Tree tree, int root, LayoutId base,
                    std::vector<Want> wants) {
    while (!wants.empty()) {
      size_t next = 0;
      int from = root;
      std::optional<Price> least;
      for (size_t i = 0; i < wants.size(); ++i) {
        auto [source, price] = cheapestSource(tree, root, base, wants[i]);
        if (!least || price < *least) {
          least = price;
          next = i;
          from = source;
        }
      }
      attach(tree, wants[next], from, base);
      wants.erase(wants.begin() + next);
    }
    return tree;
  }

  /// The branch (or `root`) from which `want` is cheapest to make, and its
  /// price. Of equally cheap ones the tensor itself, then the first branch:
  /// chains are no longer than saves something.
  std::pair<int, Price> cheapestSource(const Tree &tree, int root,
                                       LayoutId base, const Want &want) {
    int best = root;
    Price least = plan(base, want.layout).price;
    for (size_t i = root + 1; i < tree.branches.size(); ++i) {
      Price price = plan(tree.branches[i].to, want.layout).price;
      if (price < least) {
        least = price;
        best = static_cast<int>(i);
      }
    }
    return {best, least};
  }

  /// Adds the resharding that makes what `want` wants of branch `source`'s
  /// result.
  void attach(Tree &tree, const Want &want, int source, LayoutId base) {
    LayoutId from = source < 0 ? base : tree.branches[source].to;
    const PlannedReshard &planned = plan(from, want.layout);
    tree.seconds += planned.plan.seconds;
    tree.collectives += planned.price.collectives;
    tree.branches.push_back({source, from, want.layout, &planned, want.uses});
  }

  static Price priceOf(const Tree &tree) {
    int steps = 0;
    for (const Branch &branch : tree.branches)
      steps += branch.planned->price.steps;
    return {picosecondsOf(tree.seconds), tree.collectives, steps};
  }

  State &state;
  LayoutTable &table;
  int tensor;
  const GraphTensor &info;
};

} // namespace

Tree buildTree(State &state, int tensor) {
  return Builder(state, tensor).build();
}

/// A tree follows from the width of elements, from the layout in which the
/// tensor is made, from pins, and from what uses want, each once and in their
/// order, as the first of equally cheap trees is taken. Search asks for the
/// trees of a few tensors again and again, and of N equal layers N times.
double treeSeconds(State &state, int tensor) {
  const GraphTensor &info = state.graph.tensors[tensor];
  const Use &producer = state.producers[tensor];
  const std::vector<Use> &uses = state.uses[tensor];
  TreePrices &prices = state.plans.trees;
  std::vector<int> &key = prices.key;
  constexpr int none = -1;
  auto number = [](LayoutId layout) { return static_cast<int>(layout); };
  key.clear();
  key.push_back(static_cast<int>(info.elementBytes.whole));
  key.push_back(static_cast<int>(info.elementBytes.addend));
  key.push_back(producer.op >= 0        ? number(state.given(producer))
                : state.sources[tensor] ? number(*state.sources[tensor])
                                        : none);
  key.push_back(static_cast<int>(state.dims[tensor].size()));
  for (const Split &split : state.dims[tensor])
    key.push_back(split.pinned ? static_cast<int>(split.dim) : none);
  for (const Split &split : state.dims[tensor])
    key.push_back(split.closed);
  key.push_back(uses.size() > 1);
  const size_t first = key.size();
  for (const Use &use : uses) {
    int want = use.op >= 0 ? number(state.wanted(use)) : none;
    if (std::find(key.begin() + first, key.end(), want) == key.end())
      key.push_back(want);
  }
  if (auto at = prices.seconds.find(key); at != prices.seconds.end())
    return at->second;
  // Building asks for no other tree, so that the key stays what it is.
  return prices.seconds[key] = buildTree(state, tensor).seconds;
}

} // namespace ax::sharding::detail
