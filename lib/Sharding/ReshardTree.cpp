//===- ReshardTree.cpp - What is resharded from what ----------------------===//
//
// Uses that want one layout share its resharding, and a resharding may start
// from the result of another: reduced once, then sliced for nothing.
//
//===----------------------------------------------------------------------===//

#include "PropagateState.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

namespace ax::sharding::detail {

namespace {

struct Want {
  Layout layout;
  std::vector<Use> uses;
};

struct Price {
  int64_t picoseconds = 0;
  int collectives = 0;
  size_t steps = 0;

  bool operator<(const Price &o) const {
    return std::tie(picoseconds, collectives, steps) <
           std::tie(o.picoseconds, o.collectives, o.steps);
  }
};

Price priceOf(double seconds, int collectives, size_t steps) {
  return {static_cast<int64_t>(std::llround(seconds * 1e12)), collectives,
          steps};
}

class Builder {
public:
  Builder(State &state, int tensor)
      : state(state), tensor(tensor), info(state.graph.tensors[tensor]) {}

  Tree build() {
    const Use &producer = state.producers[tensor];
    if (producer.op >= 0)
      return grow(state.given(producer));
    return chooseSource();
  }

private:
  /// The layout of what comes from outside: as its uses want it; where they
  /// differ, what is cheapest, then smallest.
  Tree chooseSource() {
    std::vector<Layout> candidates;
    auto add = [&](Layout layout) {
      layout.partial.clear();
      layout = state.delivered(tensor, canonicalize(std::move(layout)));
      if (std::find(candidates.begin(), candidates.end(), layout) ==
          candidates.end())
        candidates.push_back(std::move(layout));
    };
    for (const Use &use : state.uses[tensor])
      if (use.op >= 0)
        add(state.wanted(use));
    if (candidates.size() != 1)
      add(Layout::replicated(info.shape));
    std::optional<Tree> best;
    auto keyOf = [&](const Tree &tree) {
      return std::tuple(std::llround(tree.seconds * 1e12), tree.collectives,
                        localBytes(tree.produced, info.elementBytes));
    };
    for (const Layout &candidate : candidates) {
      Tree tree = grow(candidate);
      if (!best || keyOf(tree) < keyOf(*best))
        best = std::move(tree);
    }
    return *best;
  }

  const ReshardPlan &plan(const Layout &from, const Layout &to) {
    return state.resharder.plan(from, to, info.elementBytes);
  }

  /// Reduced as an output: whole, or scattered where that is cheaper and
  /// nobody else uses it.
  Layout outputLayout(const Layout &produced) {
    Layout reduced = produced;
    reduced.partial.clear();
    reduced = canonicalize(std::move(reduced));
    if (produced.partial.empty() || state.uses[tensor].size() > 1)
      return reduced;
    Layout best = reduced;
    for (size_t d = 0; d < reduced.dims.size(); ++d) {
      auto scattered =
          reduceScatter(produced, static_cast<int>(d), produced.partial);
      if (scattered && digitsOf(scattered->dims[d]) &&
          plan(produced, *scattered).seconds < plan(produced, best).seconds)
        best = *scattered;
    }
    return best;
  }

  Tree grow(const Layout &produced) {
    Tree tree;
    tree.produced = produced;
    Layout base = produced;
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
      Layout layout = use.op >= 0 ? state.wanted(use) : outputLayout(base);
      if (layout == base) {
        if (root >= 0)
          tree.reshards[root].uses.push_back(use);
        continue;
      }
      auto same = std::find_if(wants.begin(), wants.end(), [&](const Want &w) {
        return w.layout == layout;
      });
      if (same == wants.end())
        wants.push_back({std::move(layout), {use}});
      else
        same->uses.push_back(use);
    }
    if (wants.empty())
      return tree;
    if (wants.size() > 3)
      return growGreedily(std::move(tree), root, base, std::move(wants));
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

  Tree growGreedily(Tree tree, int root, const Layout &base,
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

  std::pair<int, Price> cheapestSource(const Tree &tree, int root,
                                       const Layout &base, const Want &want) {
    int best = root;
    auto priceFrom = [&](const Layout &from) {
      const ReshardPlan &p = plan(from, want.layout);
      return sharding::detail::priceOf(p.seconds, p.numCollectives(),
                                       p.steps.size());
    };
    Price least = priceFrom(base);
    for (size_t i = root + 1; i < tree.reshards.size(); ++i) {
      Price price = priceFrom(tree.reshards[i].to);
      if (price < least) {
        least = price;
        best = static_cast<int>(i);
      }
    }
    return {best, least};
  }

  void attach(Tree &tree, const Want &want, int source, const Layout &base) {
    const Layout &from = source < 0 ? base : tree.reshards[source].to;
    const ReshardPlan &p = plan(from, want.layout);
    Reshard reshard;
    reshard.tensor = tensor;
    reshard.source = source;
    reshard.from = from;
    reshard.to = want.layout;
    reshard.steps = p.steps;
    reshard.seconds = p.seconds;
    reshard.uses = want.uses;
    tree.seconds += p.seconds;
    tree.collectives += p.numCollectives();
    tree.reshards.push_back(std::move(reshard));
  }

  static Price priceOf(const Tree &tree) {
    size_t steps = 0;
    for (const Reshard &reshard : tree.reshards)
      steps += reshard.steps.size();
    return sharding::detail::priceOf(tree.seconds, tree.collectives, steps);
  }

  State &state;
  int tensor;
  const GraphTensor &info;
};

std::string splitText(const State &state, int op, size_t factor) {
  const GraphOp &graphOp = state.graph.ops[op];
  const Split &split = state.factors[op][factor];
  std::string text = factor < graphOp.factorNames.size()
                         ? graphOp.factorNames[factor]
                         : std::string();
  text = text.empty() ? graphOp.name + " is split"
                      : text + " of " + graphOp.name + " is split";
  if (split.cause >= 0)
    text += " (" + state.causes[split.cause] + ")";
  return text;
}

/// The op whose split reduction a partial sum over `axes` comes from.
std::string partialCause(const State &state, int tensor, const SubAxes &axes) {
  for (;;) {
    const Use &producer = state.producers[tensor];
    if (producer.op < 0)
      return "";
    const GraphOp &op = state.graph.ops[producer.op];
    for (size_t f = 0; f < op.rule.factors.size(); ++f)
      if (op.rule.factors[f].kind == FactorKind::Reduction &&
          overlap(state.factors[producer.op][f].dim.axes(), axes))
        return splitText(state, producer.op, f);
    int carrier = -1;
    for (size_t i = 0; i < op.operands.size(); ++i)
      if (overlap(state.wanted({producer.op, static_cast<int>(i)}).partial,
                  axes)) {
        const Use &next = state.producers[op.operands[i]];
        if (carrier < 0 ||
            (next.op >= 0 && overlap(state.given(next).partial, axes)))
          carrier = op.operands[i];
      }
    if (carrier < 0)
      return "";
    tensor = carrier;
  }
}

/// The first factor of `op` that splits something over `axes`.
std::string factorCause(const State &state, int op, const SubAxes &axes) {
  for (size_t f = 0; op >= 0 && f < state.factors[op].size(); ++f)
    if (overlap(state.factors[op][f].dim.axes(), axes))
      return splitText(state, op, f);
  return "";
}

} // namespace

Tree buildTree(State &state, int tensor) {
  return Builder(state, tensor).build();
}

std::string causeOf(const State &state, const Reshard &reshard) {
  SubAxes reduced = withoutAxes(reshard.from.partial, reshard.to.partial);
  if (!reduced.empty()) {
    std::string text = partialCause(state, reshard.tensor, reduced);
    if (!text.empty())
      return text;
  }
  SubAxes before, after;
  for (size_t d = 0; d < reshard.from.dims.size(); ++d) {
    if (reshard.from.dims[d] == reshard.to.dims[d])
      continue;
    for (const SubAxis &axis : reshard.from.dims[d].axes())
      before.push_back(axis);
    for (const SubAxis &axis : reshard.to.dims[d].axes())
      after.push_back(axis);
  }
  // Who wants it otherwise: the consumer's split, else a pin of the tensor,
  // else the producer's split.
  for (const SubAxes &axes : {after, before}) {
    if (axes.empty())
      continue;
    for (const Use &use : reshard.uses) {
      std::string text = factorCause(state, use.op, axes);
      if (!text.empty())
        return text;
    }
  }
  const GraphTensor &tensor = state.graph.tensors[reshard.tensor];
  for (const Split &split : state.dims[reshard.tensor])
    if (split.pinned && split.cause >= 0)
      return tensor.name + " is pinned (" + state.causes[split.cause] + ")";
  std::string text =
      factorCause(state, state.producers[reshard.tensor].op, before);
  if (!text.empty())
    return text;
  return tensor.name + " is used in two layouts";
}

} // namespace ax::sharding::detail
