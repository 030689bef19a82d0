//===- Refine.cpp - Cheaper assignments where neighbours disagree ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a tensor is resharded at a cost, the ops at both ends try the other's
// layout, alone or with the ops behind them that had agreed with them; the
// change that saves most is kept, until none saves anything. Pinned factors
// never change, and nobody takes up axes that no neighbour uses.
//
// A change counts by what it does to the predicted seconds of everything: of
// the ops that change, and of the reshardings of all tensors beside them. Each
// one that is kept lowers this sum, so no assignment comes twice, and the
// search ends in a local optimum.
//
// What a try at one tensor finds depends only on ops near it. It is not
// repeated before one of these has changed, so that the work of a graph of N
// equal layers is N times that of one.
//
// An example: a convolution gives its channels split, [{}, {col}, {}, {}], and
// an addition behind it has them whole, as its other operand is. Between them
// is an all-gather. The convolution tries the addition's layout, and no split
// over col; the addition tries the convolution's layout. Then its other operand
// is sliced, for nothing, and whoever reads its result gathers that instead:
// alone this saves nothing. With the Relu behind it and the next convolution,
// if no pin holds that, there is no gather any more, but an all-reduce behind
// the sum over channels. What saves more of the sum of all seconds is kept.
//
// Of a partial sum, all that read it are also tried together: where they are
// split over its axes, none alone could pass it on to where it is smaller. As
// passing is decided anew behind the search, such a change is held against a
// search without them (Propagate.cpp).
//
//===----------------------------------------------------------------------===//

#include "Trial.h"

#include <algorithm>
#include <set>
#include <utility>

namespace ax::sharding::detail {

namespace {

enum class Follow { None, Backward, Forward };

class Refiner {
public:
  Refiner(State &state, bool mayPassOn)
      : state(state), graph(state.graph), table(state.table), trial(state),
        mayPassOn(mayPassOn), tries(graph.tensors.size()) {}

  /// In program order, each tensor until nothing more is saved there. The order
  /// counts, as each change is kept: the result is a local optimum, and the
  /// same one each time.
  void run() {
    for (int sweep = 0; sweep < maxSweeps; ++sweep) {
      bool changed = false;
      for (size_t t = 0; t < graph.tensors.size(); ++t)
        while (trial.secondsOf(t) > 0 && mayImprove(tries[t]) &&
               improve(static_cast<int>(t)))
          changed = true;
      if (!changed)
        return;
    }
  }

  Refined getResult() const { return {trial.numWeighed, passesOn}; }

private:
  /// A sweep can only find something where the one before changed something
  /// near. Mostly the third finds nothing; some chains of sequence parallelism
  /// take four.
  static constexpr int maxSweeps = 8;
  /// One change is of no more ops. Without a limit it would travel along a
  /// residual stream through all layers, and a try would cost as much as the
  /// model is deep. A chain that is longer goes on in the next change.
  static constexpr size_t maxOps = 64;
  /// A try that saved nothing: when it was, and the ops that it looked at.
  struct Try {
    int at = -1;
    std::vector<int> ops;
  };

  LayoutId layoutAt(const Use &use, bool isResult) const {
    return isResult ? state.given(use) : state.wanted(use);
  }

  bool mayImprove(const Try &last) const {
    return last.at < 0 ||
           std::any_of(
               last.ops.begin(), last.ops.end(),
               [&](int op) { return trial.changedAt(op) > last.at; });
  }

  /// The op's factors, changed so that one of its tensors is split as `like`
  /// is; `reasons` are of the tensor's dimensions.
  std::optional<std::vector<Split>> adopt(int op, const TensorMap &map,
                                          const std::vector<SizesId> &sizes,
                                          LayoutId like,
                                          const std::vector<Split> &reasons);
  std::optional<std::vector<Split>>
  adoptOperand(const Use &use, LayoutId like,
               const std::vector<Split> &reasons = {}) {
    return adopt(use.op, graph.ops[use.op].rule.operands[use.operand],
                 state.rules[use.op]->operandSizes[use.operand], like, reasons);
  }
  std::optional<std::vector<Split>>
  adoptResult(const Use &producer, LayoutId like,
              const std::vector<Split> &reasons = {}) {
    return adopt(
        producer.op, graph.ops[producer.op].rule.results[producer.operand],
        state.rules[producer.op]->resultSizes[producer.operand], like, reasons);
  }
  /// The op's factors without any split over `axes`.
  std::optional<std::vector<Split>> without(int op, AxesId axes);

  void follow(Follow direction);
  bool leaves(int op) const;
  std::optional<Passing> passingOf(int op, AxesId axes) const;
  void passOn(int tensor, AxesId axes);
  void consider(int op, const std::vector<Split> &factors, Trial::Move &best);
  bool improve(int tensor);

  State &state;
  const Graph &graph;
  LayoutTable &table;
  Trial trial;
  bool mayPassOn, passesOn = false;
  std::vector<Try> tries;
  /// Room of a function that is called often.
  std::vector<bool> fixed;
};

/// What the tensor does not decide stays, but for axes that the tensor has now:
/// other factors give these up. Nothing when a pinned factor would change, the
/// op cannot be split so, or is already.
///
/// A Linear with m whole and n split over col, whose result is to be [{col},
/// {}] like what its user wants: m takes col, n is told whole by the same
/// layout; k, which the result does not have, stays, unless it had col: then it
/// gives it up, as one axis splits one factor of an op.
std::optional<std::vector<Split>>
Refiner::adopt(int op, const TensorMap &map, const std::vector<SizesId> &sizes,
               LayoutId like, const std::vector<Split> &reasons) {
  std::vector<Split> changed = state.factors[op];
  fixed.assign(changed.size(), false);
  bool differs = false;
  AxesId taken = LayoutTable::noAxes;
  for (size_t d = 0; d < map.size(); ++d) {
    const std::vector<DimId> *parts =
        table.divide(table[like].dims[d], sizes[d]);
    if (!parts)
      return std::nullopt;
    for (size_t i = 0; i < map[d].size(); ++i) {
      Split &split = changed[map[d][i]];
      fixed[map[d][i]] = true;
      if (split.dim != (*parts)[i]) {
        if (split.pinned)
          return std::nullopt;
        differs = true;
        split = {(*parts)[i]};
        // The reason travels with the layout.
        if (d < reasons.size() && table.isSplit(split.dim)) {
          split.level = reasons[d].level;
          split.cause = reasons[d].cause;
        }
      }
      taken = table.concat(taken, table.axesOf(split.dim));
    }
  }
  for (size_t f = 0; f < changed.size(); ++f) {
    AxesId clash = table.common(table.axesOf(changed[f].dim), taken);
    if (fixed[f] || clash == LayoutTable::noAxes)
      continue;
    std::optional<DimId> rest = table.unsplit(changed[f].dim, clash);
    if (changed[f].pinned || !rest)
      return std::nullopt;
    changed[f].dim = *rest;
    differs = true;
  }
  if (!differs || !state.canHave(op, changed))
    return std::nullopt;
  return changed;
}

/// Giving axes up costs repeated work, which opSeconds() counts, and saves what
/// is exchanged over them: small element-wise ops are better done by everyone.
std::optional<std::vector<Split>> Refiner::without(int op, AxesId axes) {
  std::vector<Split> changed = state.factors[op];
  bool differs = false;
  for (Split &split : changed) {
    AxesId mine = table.common(table.axesOf(split.dim), axes);
    if (mine == LayoutTable::noAxes)
      continue;
    std::optional<DimId> rest = table.unsplit(split.dim, mine);
    if (split.pinned || !rest)
      return std::nullopt;
    split.dim = *rest;
    differs = true;
  }
  return differs ? std::optional(changed) : std::nullopt;
}

/// Lets ops that agreed with a changed one, behind or ahead of it, change with
/// it: those that had the layout that it had take the one that it has. A pinned
/// tensor ends the chain, as pins deliver what they say on either side.
void Refiner::follow(Follow direction) {
  if (direction == Follow::None)
    return;
  bool backward = direction == Follow::Backward;
  for (size_t next = 0;
       next < trial.changes().size() && trial.changes().size() < maxOps;
       ++next) {
    int op = trial.changes()[next].op;
    const GraphOp &graphOp = graph.ops[op];
    const OpLayouts &had = *trial.changes()[next].layouts,
                    &has = *state.layouts[op];
    const std::vector<int> &tensors =
        backward ? graphOp.operands : graphOp.results;
    for (size_t i = 0; i < tensors.size(); ++i) {
      LayoutId before = backward ? had.operands[i] : had.results[i];
      LayoutId after = backward ? has.operands[i] : has.results[i];
      if (table.sameDims(after, before) || state.isPinned(tensors[i]))
        continue;
      auto consult = [&](const Use &use) {
        if (use.op < 0 || trial.isChanged(use.op) ||
            trial.changes().size() >= maxOps ||
            !table.sameDims(layoutAt(use, backward), before))
          return;
        auto factors =
            backward ? adoptResult(use, after) : adoptOperand(use, after);
        if (factors)
          trial.change(use.op, std::move(*factors));
      };
      if (backward)
        consult(state.producers[tensors[i]]);
      else
        for (const Use &use : state.uses[tensors[i]])
          consult(use);
    }
  }
}

/// Whether a result is read outside of the program, which gets it reduced.
bool Refiner::leaves(int op) const {
  const std::vector<int> &results = graph.ops[op].results;
  return std::any_of(results.begin(), results.end(), [&](int result) {
    const std::vector<Use> &uses = state.uses[result];
    // It is the last in order.
    return !uses.empty() && uses.back().op < 0;
  });
}

/// How the op passes on sums over `axes` that some operands bring; the others
/// of a linear set are added on the first rank alone.
std::optional<Passing> Refiner::passingOf(int op, AxesId axes) const {
  const GraphOp &graphOp = graph.ops[op];
  if (state.ownReduction(op).value_or(ReduceKind::Sum) != ReduceKind::Sum)
    return std::nullopt;
  auto bring = [&](int operand) {
    const Use &producer = state.producers[graphOp.operands[operand]];
    if (producer.op < 0)
      return LayoutTable::noAxes;
    const LayoutEntry &given = table[state.given(producer)];
    return given.value.partialKind == ReduceKind::Sum ? given.partial
                                                      : LayoutTable::noAxes;
  };
  for (size_t s = 0; s < graphOp.rule.linear.size(); ++s) {
    const std::vector<int> &set = graphOp.rule.linear[s];
    bool isAny = false, isAll = true;
    for (int operand : set) {
      AxesId brought = bring(operand);
      isAny |= brought == axes;
      isAll &= brought == axes || brought == LayoutTable::noAxes;
    }
    if (isAny && isAll)
      return Passing{axes, ReduceKind::Sum, static_cast<int>(s)};
  }
  return std::nullopt;
}

/// Lets all that read a sum over `axes` pass it on, in topological order, up to
/// where less than half of it is left. For that they are not split over these
/// axes themselves.
///
/// What a token's experts give, [tokens, experts, features], is weighted and
/// summed over the experts, and by the gradient of the weights over the
/// features. Split by tokens, both would have it reduced first; alone, neither
/// could save that.
void Refiner::passOn(int tensor, AxesId axes) {
  const int64_t elements =
      table.localBytes(state.given(state.producers[tensor]), 1);
  std::set<int> open;
  auto openUsers = [&](int of) {
    for (const Use &use : state.uses[of])
      if (use.op >= 0 && !state.isPinned(of))
        open.insert(state.places[use.op]);
  };
  openUsers(tensor);
  while (!open.empty() && trial.changes().size() < maxOps) {
    int op = state.order[*open.begin()];
    open.erase(open.begin());
    for (int operand : graph.ops[op].operands)
      trial.readTensor(operand);
    std::optional<Passing> passing = passingOf(op, axes);
    std::vector<Split> factors = without(op, axes).value_or(state.factors[op]);
    if (!passing || leaves(op) || !state.canHave(op, factors))
      continue;
    trial.change(op, std::move(factors), &*passing);
    for (size_t r = 0; r < graph.ops[op].results.size(); ++r) {
      LayoutId given = state.given({op, static_cast<int>(r)});
      if (table.isPartial(given) && 2 * table.localBytes(given, 1) > elements)
        openUsers(graph.ops[op].results[r]);
    }
  }
}

/// Tries the change alone and with those that follow, and keeps the best. Alone
/// is not enough: moving a resharding by one op changes nothing in a chain
/// whose tensors are of one size, while moving it to the end of the chain,
/// where the tensor is smaller or wanted so, saves. All three begin from the
/// same state.
void Refiner::consider(int op, const std::vector<Split> &factors,
                       Trial::Move &best) {
  for (Follow direction : {Follow::None, Follow::Backward, Follow::Forward}) {
    trial.change(op, factors);
    follow(direction);
    if (direction == Follow::None || trial.changes().size() > 1)
      trial.weigh(best);
    else
      trial.undo();
  }
}

/// Tries what each end of each resharding of the tensor could do about it: have
/// the other's layout, or not split over the axes that move at all; and of a
/// sum, that nobody has it reduced. Makes the best change, if one saves
/// anything. With R reshardings and U uses these are at most 2 (R + U) changes,
/// each in three ways, and one.
bool Refiner::improve(int tensor) {
  Trial::Move best;
  trial.beginReading();
  trial.readTensor(tensor);
  const Tree tree = buildTree(state, tensor);
  const Use producer = state.producers[tensor];
  const std::vector<Split> &reasons = state.dims[tensor];
  for (const Branch &branch : tree.branches) {
    if (branch.seconds() == 0)
      continue;
    const LayoutEntry &from = table[branch.from], &to = table[branch.to];
    AxesId moved = LayoutTable::noAxes;
    for (size_t d = 0; d < from.dims.size(); ++d)
      if (from.dims[d] != to.dims[d])
        for (const LayoutEntry *side : {&from, &to})
          moved = table.concat(moved, table.axesOf(side->dims[d]));
    moved = table.concat(moved, table.without(from.partial, to.partial));
    if (producer.op >= 0) {
      if (auto factors = adoptResult(producer, branch.to, reasons))
        consider(producer.op, *factors, best);
      if (auto factors = without(producer.op, moved))
        consider(producer.op, *factors, best);
    }
    // What a pin has put together again is not there to be taken up.
    if (producer.op >= 0 &&
        !table.sameDims(state.delivered(tensor, branch.from), branch.from))
      continue;
    for (const Use &use : branch.uses) {
      if (use.op < 0)
        continue;
      if (auto factors = adoptOperand(use, branch.from, reasons))
        consider(use.op, *factors, best);
      if (auto factors = without(use.op, moved))
        consider(use.op, *factors, best);
    }
  }
  const double bestOfOthers = best.gain;
  if (const LayoutEntry &given = table[tree.produced];
      mayPassOn && producer.op >= 0 && given.partial != LayoutTable::noAxes &&
      given.value.partialKind == ReduceKind::Sum) {
    passOn(tensor, given.partial);
    if (!trial.changes().empty())
      trial.weigh(best);
  }
  if (best.changes.empty()) {
    tries[tensor] = {trial.numMoves, trial.getRead()};
    return false;
  }
  passesOn |= best.gain > bestOfOthers;
  trial.make(best);
  return true;
}

} // namespace

Refined refine(State &state, bool mayPassOn) {
  Refiner refiner(state, mayPassOn);
  refiner.run();
  return refiner.getResult();
}

} // namespace ax::sharding::detail
