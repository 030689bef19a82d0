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
//===----------------------------------------------------------------------===//

#include "PropagateState.h"

#include <algorithm>
#include <utility>

namespace ax::sharding::detail {

namespace {

enum class Follow { None, Backward, Forward };

class Refiner {
public:
  explicit Refiner(State &state)
      : state(state), graph(state.graph), table(state.table),
        secondsOfTree(graph.tensors.size()), tries(graph.tensors.size()),
        changedAt(graph.ops.size()), savedAt(graph.ops.size(), -1),
        readAt(graph.ops.size()) {
    for (size_t t = 0; t < graph.tensors.size(); ++t)
      secondsOfTree[t] = costOf(static_cast<int>(t));
    for (size_t op = 0; op < graph.ops.size(); ++op)
      secondsOfOp.push_back(state.opSeconds(static_cast<int>(op)));
  }

  /// In program order, each tensor until nothing more is saved there. The order
  /// counts, as each change is kept: the result is a local optimum, and the
  /// same one each time.
  void run() {
    for (int sweep = 0; sweep < maxSweeps; ++sweep) {
      bool changed = false;
      for (size_t t = 0; t < graph.tensors.size(); ++t)
        while (secondsOfTree[t] > 0 && mayImprove(tries[t]) &&
               improve(static_cast<int>(t)))
          changed = true;
      if (!changed)
        return;
    }
  }

  /// How many changes have been tried so far.
  int64_t numChanges = 0;

private:
  /// A sweep can only find something where the one before changed something
  /// near. Mostly the third finds nothing; some chains of sequence parallelism
  /// take four.
  static constexpr int maxSweeps = 8;
  /// One change is of no more ops. Without a limit it would travel along a
  /// residual stream through all layers, and a try would cost as much as the
  /// model is deep. A chain that is longer goes on in the next change.
  static constexpr size_t maxOps = 64;
  /// In seconds: a picosecond, as the prices of paths have. What is less may
  /// come from adding the same numbers in another order, and a change that
  /// gains nothing must not be made, undone and made again.
  static constexpr double leastGain = 1e-12;

  /// A changed op with what it was before.
  struct Saved {
    int op;
    std::vector<Split> factors;
    Passing passing;
    const OpLayouts *layouts;
  };
  struct Move {
    std::vector<std::pair<int, std::vector<Split>>> factors;
    double gain = 0;
  };
  /// A try that saved nothing: when it was, and the ops that it looked at.
  struct Try {
    int at = -1;
    std::vector<int> ops;
  };

  /// Seconds of all reshardings of the tensor, as its ops are now.
  double costOf(int tensor) { return treeSeconds(state, tensor); }

  LayoutId layoutAt(const Use &use, bool isResult) const {
    return isResult ? state.given(use) : state.wanted(use);
  }

  bool mayImprove(const Try &last) const {
    return last.at < 0 || std::any_of(
                              last.ops.begin(), last.ops.end(),
                              [&](int op) { return changedAt[op] > last.at; });
  }

  /// Notes that the try looks at the op, or at all ops of a tensor.
  void readOp(int op);
  void readTensor(int tensor);

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

  /// Changes an op, which is `saved` first, and is not yet.
  void change(int op, std::vector<Split> factors);
  void undo();
  /// Tensors that the saved ops lay out otherwise than before, in order.
  const std::vector<int> &changedTensors();
  void follow(Follow direction);
  void consider(int op, const std::vector<Split> &factors, Move &best);
  bool improve(int tensor);
  void commit(const Move &move);

  State &state;
  const Graph &graph;
  LayoutTable &table;
  /// Of each op's own work and of each tensor's reshardings, as they are but
  /// for the move that is considered.
  std::vector<double> secondsOfOp, secondsOfTree;

  std::vector<Try> tries;
  /// The number of moves made when an op was changed last.
  std::vector<int> changedAt;
  int numMoves = 0;

  /// What the move that is considered has changed, in that order; and where in
  /// it each op is.
  std::vector<Saved> saved;
  std::vector<int> savedAt;
  /// Room of functions that are called often.
  std::vector<bool> fixed;
  std::vector<int> tensorsOfMove;
  std::vector<std::pair<int, int>> opsOfMove;

  /// What the try looks at; and of each op, the number of the try that did.
  std::vector<int> reads, readAt;
  int numTries = 0;
};

void Refiner::readOp(int op) {
  if (op < 0 || readAt[op] == numTries)
    return;
  readAt[op] = numTries;
  reads.push_back(op);
}

void Refiner::readTensor(int tensor) {
  readOp(state.producers[tensor].op);
  for (const Use &use : state.uses[tensor])
    readOp(use.op);
}

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

/// Partial sums that the op passes on cannot be over an axis that splits it
/// now: it reduces them. Others are decided anew when all is refined.
void Refiner::change(int op, std::vector<Split> factors) {
  savedAt[op] = static_cast<int>(saved.size());
  saved.push_back({op, std::exchange(state.factors[op], std::move(factors)),
                   state.passing[op], state.layouts[op]});
  if (state.splitsOver(op, state.passing[op].axes))
    state.passing[op] = {};
  state.updateLayouts(op);
  readOp(op);
}

/// Leaves in `saved` the factors that it takes back.
void Refiner::undo() {
  for (Saved &entry : saved) {
    std::swap(state.factors[entry.op], entry.factors);
    state.passing[entry.op] = entry.passing;
    state.layouts[entry.op] = entry.layouts;
    savedAt[entry.op] = -1;
  }
}

const std::vector<int> &Refiner::changedTensors() {
  tensorsOfMove.clear();
  for (const Saved &entry : saved) {
    const GraphOp &op = graph.ops[entry.op];
    const OpLayouts &before = *entry.layouts, &now = *state.layouts[entry.op];
    for (size_t i = 0; i < op.operands.size(); ++i)
      if (before.operands[i] != now.operands[i])
        tensorsOfMove.push_back(op.operands[i]);
    for (size_t i = 0; i < op.results.size(); ++i)
      if (before.results[i] != now.results[i])
        tensorsOfMove.push_back(op.results[i]);
  }
  std::sort(tensorsOfMove.begin(), tensorsOfMove.end());
  tensorsOfMove.erase(std::unique(tensorsOfMove.begin(), tensorsOfMove.end()),
                      tensorsOfMove.end());
  return tensorsOfMove;
}

/// Lets ops that agreed with a changed one, behind or ahead of it, change with
/// it: those that had the layout that it had take the one that it has. A pinned
/// tensor ends the chain, as pins deliver what they say on either side.
void Refiner::follow(Follow direction) {
  if (direction == Follow::None)
    return;
  bool backward = direction == Follow::Backward;
  for (size_t next = 0; next < saved.size() && saved.size() < maxOps; ++next) {
    int op = saved[next].op;
    const GraphOp &graphOp = graph.ops[op];
    const OpLayouts &had = *saved[next].layouts, &has = *state.layouts[op];
    const std::vector<int> &tensors =
        backward ? graphOp.operands : graphOp.results;
    for (size_t i = 0; i < tensors.size(); ++i) {
      LayoutId before = backward ? had.operands[i] : had.results[i];
      LayoutId after = backward ? has.operands[i] : has.results[i];
      if (table.sameDims(after, before) || state.isPinned(tensors[i]))
        continue;
      auto consult = [&](const Use &use) {
        if (use.op < 0 || savedAt[use.op] >= 0 || saved.size() >= maxOps ||
            !table.sameDims(layoutAt(use, backward), before))
          return;
        auto factors =
            backward ? adoptResult(use, after) : adoptOperand(use, after);
        if (factors)
          change(use.op, std::move(*factors));
      };
      if (backward)
        consult(state.producers[tensors[i]]);
      else
        for (const Use &use : state.uses[tensors[i]])
          consult(use);
    }
  }
}

/// Tries the change alone and with those that follow, and keeps the best. Alone
/// is not enough: moving a resharding by one op changes nothing in a chain
/// whose tensors are of one size, while moving it to the end of the chain,
/// where the tensor is smaller or wanted so, saves.
///
/// All three begin from the same state, which undo() brings back, and are
/// summed over the same tensors before and after. Ops are in the order of their
/// numbers, so that the sum does not depend on the order of changes.
void Refiner::consider(int op, const std::vector<Split> &factors, Move &best) {
  for (Follow direction : {Follow::None, Follow::Backward, Follow::Forward}) {
    ++numChanges;
    saved.clear();
    change(op, factors);
    follow(direction);
    if (direction != Follow::None && saved.size() == 1) {
      undo();
      continue;
    }
    opsOfMove.clear();
    for (const Saved &entry : saved)
      opsOfMove.emplace_back(entry.op, savedAt[entry.op]);
    std::sort(opsOfMove.begin(), opsOfMove.end());
    double gain = 0;
    for (auto [changed, place] : opsOfMove)
      gain -= state.opSeconds(changed);
    for (int t : changedTensors()) {
      readTensor(t);
      gain += secondsOfTree[t] - costOf(t);
    }
    undo();
    for (auto [changed, place] : opsOfMove)
      gain += secondsOfOp[changed];
    if (!(gain > best.gain + leastGain))
      continue;
    best.gain = gain;
    best.factors.clear();
    for (auto [changed, place] : opsOfMove)
      best.factors.emplace_back(changed, std::move(saved[place].factors));
  }
  saved.clear();
}

/// Tries what each end of each resharding of the tensor could do about it: have
/// the other's layout, or not split over the axes that move at all. Makes the
/// best change, if one saves anything. With R reshardings and U uses these are
/// at most 2 (R + U) changes, each in three ways.
bool Refiner::improve(int tensor) {
  Move best;
  ++numTries;
  reads.clear();
  readTensor(tensor);
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
  if (best.factors.empty()) {
    tries[tensor] = {numMoves, reads};
    return false;
  }
  commit(best);
  return true;
}

void Refiner::commit(const Move &move) {
  ++numMoves;
  for (const auto &[op, factors] : move.factors) {
    change(op, factors);
    changedAt[op] = numMoves;
    secondsOfOp[op] = state.opSeconds(op);
  }
  for (int t : changedTensors())
    secondsOfTree[t] = costOf(t);
  for (const Saved &entry : saved)
    savedAt[entry.op] = -1;
  saved.clear();
}

} // namespace

int64_t refine(State &state) {
  Refiner refiner(state);
  refiner.run();
  return refiner.numChanges;
}

} // namespace ax::sharding::detail
