//===- Refine.cpp - Cheaper assignments where neighbours disagree ---------===//
//
// Where a tensor is resharded at a cost, the ops at both ends try the other's
// layout, alone or with the ops behind them that had agreed with them; the
// change that saves most is kept, until none saves anything. Pinned factors
// never change, and nobody takes up axes that no neighbour uses.
//
//===----------------------------------------------------------------------===//

#include "PropagateState.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>

namespace ax::sharding::detail {

namespace {

enum class Follow { None, Backward, Forward };

class Refiner {
public:
  explicit Refiner(State &state)
      : state(state), graph(state.graph), treeSeconds(graph.tensors.size()) {
    for (size_t t = 0; t < graph.tensors.size(); ++t)
      treeSeconds[t] = costOf(static_cast<int>(t));
  }

  void run() {
    for (int sweep = 0; sweep < maxSweeps; ++sweep) {
      bool changed = false;
      for (size_t t = 0; t < graph.tensors.size(); ++t)
        while (treeSeconds[t] > 0 && improve(static_cast<int>(t)))
          changed = true;
      if (!changed)
        return;
    }
  }

private:
  static constexpr int maxSweeps = 8;
  static constexpr size_t maxOps = 64;

  /// Changed ops with what they were before.
  struct Saved {
    std::vector<Split> factors;
    Passing passing;
  };
  struct Move {
    std::map<int, std::vector<Split>> factors;
    double gain = 0;
  };

  double costOf(int tensor) { return buildTree(state, tensor).seconds; }

  Layout layoutAt(const Use &use, bool isResult) const {
    return isResult ? state.given(use) : state.wanted(use);
  }

  /// The op's factors, changed so that one of its tensors is split as `dims`.
  std::optional<std::vector<Split>> adopt(int op, const TensorMap &map,
                                          const std::vector<DimLayout> &dims,
                                          const std::vector<Split> &like) const;
  /// The op's factors without any split over `axes`.
  std::optional<std::vector<Split>> without(int op, const SubAxes &axes) const;

  void apply(int op, const std::vector<Split> &factors);
  void follow(int seed, Follow direction, std::map<int, Saved> &saved);
  void consider(int op, const std::vector<Split> &factors, Move &best);
  bool improve(int tensor);

  State &state;
  const Graph &graph;
  std::vector<double> treeSeconds;
};

std::optional<std::vector<Split>>
Refiner::adopt(int op, const TensorMap &map, const std::vector<DimLayout> &dims,
               const std::vector<Split> &like) const {
  const Rule &rule = graph.ops[op].rule;
  std::vector<Split> changed = state.factors[op];
  std::vector<bool> fixed(changed.size());
  SubAxes taken;
  for (size_t d = 0; d < map.size(); ++d) {
    std::vector<int64_t> sizes;
    for (int factor : map[d])
      sizes.push_back(rule.factors[factor].size);
    auto parts = divide(dims[d], sizes);
    if (!parts)
      return std::nullopt;
    for (size_t i = 0; i < map[d].size(); ++i) {
      Split &split = changed[map[d][i]];
      fixed[map[d][i]] = true;
      if (!(split.dim == (*parts)[i])) {
        if (split.pinned)
          return std::nullopt;
        split = {(*parts)[i]};
        // The reason travels with the layout.
        if (d < like.size() && split.dim.isSplit()) {
          split.level = like[d].level;
          split.cause = like[d].cause;
        }
      }
      for (const SubAxis &axis : split.dim.axes())
        taken.push_back(axis);
    }
  }
  for (size_t f = 0; f < changed.size(); ++f) {
    SubAxes all = changed[f].dim.axes();
    SubAxes clash = withoutAxes(all, withoutAxes(all, taken));
    if (fixed[f] || clash.empty())
      continue;
    auto rest = unsplit(changed[f].dim, clash);
    if (changed[f].pinned || !rest)
      return std::nullopt;
    changed[f].dim = *rest;
  }
  if (findFactorsFault(state, op, changed))
    return std::nullopt;
  return changed;
}

std::optional<std::vector<Split>> Refiner::without(int op,
                                                   const SubAxes &axes) const {
  std::vector<Split> changed = state.factors[op];
  bool differs = false;
  for (Split &split : changed) {
    SubAxes all = split.dim.axes();
    SubAxes mine = withoutAxes(all, withoutAxes(all, axes));
    if (mine.empty())
      continue;
    auto rest = unsplit(split.dim, mine);
    if (split.pinned || !rest)
      return std::nullopt;
    split.dim = *rest;
    differs = true;
  }
  return differs ? std::optional(changed) : std::nullopt;
}

void Refiner::apply(int op, const std::vector<Split> &factors) {
  state.factors[op] = factors;
  SubAxes used;
  for (const Split &split : factors)
    for (const SubAxis &axis : split.dim.axes())
      used.push_back(axis);
  if (overlap(used, state.passing[op].axes))
    state.passing[op] = {};
  state.updateLayouts(op);
}

bool sameDims(const Layout &a, const Layout &b) { return a.dims == b.dims; }

/// Lets ops that agreed with a changed one, behind or ahead of it, change with
/// it.
void Refiner::follow(int seed, Follow direction, std::map<int, Saved> &saved) {
  if (direction == Follow::None)
    return;
  std::deque<int> open = {seed};
  while (!open.empty() && saved.size() < maxOps) {
    int op = open.front();
    open.pop_front();
    const GraphOp &graphOp = graph.ops[op];
    // What the op's layouts were, to see who had agreed.
    std::vector<Split> now = state.factors[op];
    state.factors[op] = saved.at(op).factors;
    state.updateLayouts(op);
    std::vector<Layout> before;
    bool backward = direction == Follow::Backward;
    const std::vector<int> &tensors =
        backward ? graphOp.operands : graphOp.results;
    for (size_t i = 0; i < tensors.size(); ++i)
      before.push_back(layoutAt({op, static_cast<int>(i)}, !backward));
    state.factors[op] = now;
    state.updateLayouts(op);
    for (size_t i = 0; i < tensors.size(); ++i) {
      const Layout after = layoutAt({op, static_cast<int>(i)}, !backward);
      if (sameDims(after, before[i]) || state.isPinned(tensors[i]))
        continue;
      std::vector<Use> neighbours;
      if (backward)
        neighbours = {state.producers[tensors[i]]};
      else
        neighbours = state.uses[tensors[i]];
      for (const Use &use : neighbours) {
        if (use.op < 0 || saved.count(use.op) || saved.size() >= maxOps ||
            !sameDims(layoutAt(use, backward), before[i]))
          continue;
        const Rule &rule = graph.ops[use.op].rule;
        auto factors = adopt(use.op,
                             backward ? rule.results[use.operand]
                                      : rule.operands[use.operand],
                             after.dims, {});
        if (!factors)
          continue;
        saved[use.op] = {state.factors[use.op], state.passing[use.op]};
        apply(use.op, *factors);
        open.push_back(use.op);
      }
    }
  }
}

/// Tries the change alone and with those that follow, and keeps the best.
void Refiner::consider(int op, const std::vector<Split> &factors, Move &best) {
  for (Follow direction : {Follow::None, Follow::Backward, Follow::Forward}) {
    std::map<int, Saved> saved;
    saved[op] = {state.factors[op], state.passing[op]};
    apply(op, factors);
    follow(op, direction, saved);
    if (direction != Follow::None && saved.size() == 1) {
      apply(op, saved[op].factors);
      state.passing[op] = saved[op].passing;
      state.updateLayouts(op);
      continue;
    }
    Move move;
    std::set<int> tensors;
    for (auto &entry : saved) {
      move.factors[entry.first] = state.factors[entry.first];
      move.gain -= state.opSeconds(entry.first);
      for (int t : graph.ops[entry.first].operands)
        tensors.insert(t);
      for (int t : graph.ops[entry.first].results)
        tensors.insert(t);
    }
    for (int t : tensors)
      move.gain += treeSeconds[t] - costOf(t);
    for (auto &entry : saved) {
      state.factors[entry.first] = entry.second.factors;
      state.passing[entry.first] = entry.second.passing;
      state.updateLayouts(entry.first);
      move.gain += state.opSeconds(entry.first);
    }
    // Anything less is rounding.
    if (move.gain > best.gain + 1e-12)
      best = std::move(move);
  }
}

bool Refiner::improve(int tensor) {
  Move best;
  const Tree tree = buildTree(state, tensor);
  const Use producer = state.producers[tensor];
  for (const Reshard &reshard : tree.reshards) {
    if (reshard.seconds == 0)
      continue;
    SubAxes moved;
    for (size_t d = 0; d < reshard.from.dims.size(); ++d)
      if (!(reshard.from.dims[d] == reshard.to.dims[d]))
        for (const Layout *side : {&reshard.from, &reshard.to})
          for (const SubAxis &axis : side->dims[d].axes())
            moved.push_back(axis);
    for (const SubAxis &axis :
         withoutAxes(reshard.from.partial, reshard.to.partial))
      moved.push_back(axis);
    if (producer.op >= 0) {
      const Rule &rule = graph.ops[producer.op].rule;
      if (auto factors = adopt(producer.op, rule.results[producer.operand],
                               reshard.to.dims, state.dims[tensor]))
        consider(producer.op, *factors, best);
      if (auto factors = without(producer.op, moved))
        consider(producer.op, *factors, best);
    }
    // What a pin has put together again is not there to be taken up.
    if (producer.op >= 0 &&
        !sameDims(state.delivered(tensor, reshard.from), reshard.from))
      continue;
    for (const Use &use : reshard.uses) {
      if (use.op < 0)
        continue;
      const Rule &rule = graph.ops[use.op].rule;
      if (auto factors = adopt(use.op, rule.operands[use.operand],
                               reshard.from.dims, state.dims[tensor]))
        consider(use.op, *factors, best);
      if (auto factors = without(use.op, moved))
        consider(use.op, *factors, best);
    }
  }
  if (best.factors.empty())
    return false;
  std::set<int> tensors;
  for (auto &entry : best.factors) {
    apply(entry.first, entry.second);
    for (int t : graph.ops[entry.first].operands)
      tensors.insert(t);
    for (int t : graph.ops[entry.first].results)
      tensors.insert(t);
  }
  for (int t : tensors)
    treeSeconds[t] = costOf(t);
  return true;
}

} // namespace

void refine(State &state) { Refiner(state).run(); }

} // namespace ax::sharding::detail
