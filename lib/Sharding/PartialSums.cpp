//===- PartialSums.cpp - Where partial sums are not reduced at once -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An op passes on what partial sums have in common when it is linear in all
// operands that carry it, nobody else needs these operands reduced, and the
// result is not larger. Where that would end in several reductions that cost
// more than one at once (the gradient behind a norm, which scale and bias want
// too), it is not passed. Where two sums meet in an addition only after other
// linear ops (a bias, a residual), they are passed on up to there and reduced
// once.
//
// Examples, with x and y partial sums over col and b whole:
//  - x -> reshape -> transpose: both pass it on, for one reduction at the end.
//  - relu(x): not linear, so x is reduced before it.
//  - x + y: both operands carry it, so the sum is partial, and one reduction
//    does for two.
//  - x + b: b would have to become partial first, zero on all ranks but one,
//    which costs nothing but gains nothing either: x is reduced at once.
//  - (x + b) + y, as attention and MLP side by side make it: here b becomes
//    partial, as then x and y meet unreduced.
//  - the sum of x + b over the experts that a token has: b becomes partial, as
//    the sum is a fraction of x.
//  - x, read by two linear ops: passed on both ways it ends in two reductions.
//    Where these cost more than one of x itself, both read x reduced.
//
//===----------------------------------------------------------------------===//

#include "PropagateState.h"

#include <algorithm>
#include <set>
#include <utility>

namespace ax::sharding::detail {

namespace {

/// What of a tensor is still to be reduced.
struct Partial {
  AxesId axes = LayoutTable::noAxes;
  ReduceKind kind = ReduceKind::Sum;

  bool isNone() const { return axes == LayoutTable::noAxes; }
  bool operator==(const Partial &o) const {
    return axes == o.axes && (isNone() || kind == o.kind);
  }
};

class PartialSums {
public:
  explicit PartialSums(State &state)
      : state(state), graph(state.graph), table(state.table),
        blocked(graph.ops.size(), false), partial(graph.tensors.size()) {}

  void run() {
    for (int op : state.order)
      setPassing(op, {});
    settle();
    if (blockFanOuts())
      settle();
    meetLater();
    joinWholes();
  }

private:
  /// A sum that waits for another one to meet, or to become smaller.
  struct Lazy {
    AxesId axes;
    /// How much is reduced if it does neither.
    int64_t elements;
    /// Ops, with their linear sets, that would have to pass it on.
    std::vector<std::pair<int, int>> chain;
  };

  /// In rounds: what can pass does, then what must not is blocked. It ends, as
  /// what is blocked stays so, and a round that blocks nothing is the last. A
  /// round visits, in topological order, only ops that something has changed
  /// for since they were visited last: whether they are blocked, what operands
  /// bring, or their own layouts.
  void settle() {
    std::vector<bool> next(graph.ops.size(), true);
    do {
      std::vector<bool> open =
          std::exchange(next, std::vector<bool>(graph.ops.size(), false));
      // What an op opens comes behind it.
      for (size_t place = 0; place < open.size(); ++place) {
        if (!open[place])
          continue;
        int op = state.order[place];
        Passing found = blocked[op] ? Passing() : findPassing(op);
        const Passing &had = state.passing[op];
        if (found == had)
          continue;
        next[place] = true;
        setPassing(op, found);
        for (int result : graph.ops[op].results)
          for (const Use &use : state.uses[result])
            if (use.op >= 0)
              open[state.places[use.op]] = true;
      }
    } while (block(next));
  }

  void setPassing(int op, const Passing &passing) {
    state.passing[op] = passing;
    state.updateLayouts(op);
    const std::vector<int> &results = graph.ops[op].results;
    for (size_t r = 0; r < results.size(); ++r) {
      const LayoutEntry &layout = table[state.given({op, static_cast<int>(r)})];
      partial[results[r]] = {layout.partial, layout.value.partialKind};
    }
  }

  int64_t bytesOf(const Use &use, bool isResult) const {
    const GraphOp &op = graph.ops[use.op];
    int tensor = isResult ? op.results[use.operand] : op.operands[use.operand];
    return table.localBytes(isResult ? state.given(use) : state.wanted(use),
                            graph.tensors[tensor].elementBytes);
  }

  /// Of a result; addends of narrow floats are wide.
  int64_t elementsOf(const Use &use) const {
    return table.localBytes(state.given(use), 1);
  }

  /// What both lack; the rest is reduced before they meet. Sums over {row, col}
  /// and over {col} are added as sums over {col}.
  Partial intersect(const Partial &a, const Partial &b) const {
    if (a == b)
      return a;
    return {a.kind == b.kind ? table.shared(a.axes, b.axes)
                             : LayoutTable::noAxes,
            a.kind};
  }

  /// True when passing on costs no more bytes than reducing the operands: a
  /// broadcast or a product of a narrow tensor with a wide one is not carried
  /// through, as what is reduced later would be larger. An operand that is used
  /// twice is reduced once.
  bool staysSmall(int op, const std::vector<int> &operands) const {
    int64_t before = 0, after = 0;
    std::set<int> seen;
    for (int operand : operands)
      if (seen.insert(graph.ops[op].operands[operand]).second)
        before += bytesOf({op, operand}, false);
    for (size_t r = 0; r < graph.ops[op].results.size(); ++r)
      after += bytesOf({op, static_cast<int>(r)}, true);
    return after <= before;
  }

  /// What the op can pass on, given what its operands bring: the sums common to
  /// one of its linear sets, or else a maximum or minimum that all bring.
  Passing findPassing(int op) const {
    const GraphOp &graphOp = graph.ops[op];
    auto of = [&](int operand) -> const Partial & {
      return partial[graphOp.operands[operand]];
    };
    auto fits = [&](const Partial &sum) {
      return !sum.isNone() && !state.splitsOver(op, sum.axes) &&
             state.ownReduction(op).value_or(sum.kind) == sum.kind;
    };
    for (size_t s = 0; s < graphOp.rule.linear.size(); ++s) {
      const std::vector<int> &set = graphOp.rule.linear[s];
      Partial common = of(set[0]);
      for (int operand : set)
        common = intersect(common, of(operand));
      if (common.kind != ReduceKind::Sum || !fits(common) ||
          !staysSmall(op, set))
        continue;
      return {common.axes, ReduceKind::Sum, static_cast<int>(s)};
    }
    if (!graphOp.rule.passesMaxMin || graphOp.operands.empty())
      return {};
    const Partial &first = of(0);
    for (size_t i = 0; i < graphOp.operands.size(); ++i)
      if (!(of(static_cast<int>(i)) == first))
        return {};
    if (first.kind == ReduceKind::Sum || !fits(first))
      return {};
    return {first.axes, first.kind, -1};
  }

  /// True when `use` takes the tensor partial; an output of the program does
  /// not.
  bool takesPartial(const Use &use) const {
    return use.op >= 0 && table.isPartial(state.wanted(use));
  }

  /// Blocks ops that pass on what somebody else needs reduced: as it is reduced
  /// anyway, they take the result. Adds their places to `found`; false when
  /// there are none.
  bool block(std::vector<bool> &found) {
    std::vector<int> ops;
    for (size_t t = 0; t < graph.tensors.size(); ++t) {
      if (partial[t].isNone())
        continue;
      const std::vector<Use> &uses = state.uses[t];
      bool reduced = state.isPinned(static_cast<int>(t)) ||
                     !std::all_of(uses.begin(), uses.end(), [&](const Use &u) {
                       return takesPartial(u);
                     });
      for (const Use &use : uses)
        if (reduced && takesPartial(use))
          ops.push_back(use.op);
    }
    for (int op : ops) {
      blocked[op] = true;
      found[state.places[op]] = true;
    }
    return !ops.empty();
  }

  /// What a partial tensor becomes as long as it is passed on.
  struct Reach {
    /// The ops that pass it on, in topological order.
    std::vector<int> ops;
    /// Everything that these ops read or make.
    std::set<int> tensors;
  };
  Reach reachOf(int tensor) const {
    Reach reach;
    std::set<int> found, places;
    std::vector<int> open{tensor};
    while (!open.empty()) {
      int from = open.back();
      open.pop_back();
      for (const Use &use : state.uses[from])
        if (takesPartial(use) && found.insert(use.op).second)
          for (int result : graph.ops[use.op].results)
            if (!partial[result].isNone())
              open.push_back(result);
    }
    for (int op : found)
      places.insert(state.places[op]);
    for (int place : places) {
      int op = state.order[place];
      reach.ops.push_back(op);
      for (auto *tensors : {&graph.ops[op].operands, &graph.ops[op].results})
        reach.tensors.insert(tensors->begin(), tensors->end());
    }
    return reach;
  }
  double secondsOf(const Reach &reach) {
    double seconds = 0;
    for (int tensor : reach.tensors)
      seconds += treeSeconds(state, tensor);
    return seconds;
  }

  /// Blocks the users of what is passed on several ways, where that is cheaper.
  /// Each is decided alone, in program order: what it is worth is the
  /// difference of everything that the sum reaches, with and without it.
  bool blockFanOuts() {
    bool any = false;
    for (int maker : state.order)
      for (int tensor : graph.ops[maker].results) {
        const std::vector<Use> &uses = state.uses[tensor];
        if (partial[tensor].isNone() || uses.size() < 2 ||
            !takesPartial(uses.front()))
          continue;
        Reach reach = reachOf(tensor);
        double before = secondsOf(reach);
        std::vector<int> added;
        for (const Use &use : uses)
          if (use.op >= 0 && !blocked[use.op]) {
            blocked[use.op] = true;
            added.push_back(use.op);
          }
        auto update = [&] {
          for (int op : reach.ops)
            setPassing(op, blocked[op] ? Passing() : findPassing(op));
        };
        update();
        if (secondsOf(reach) < before) {
          any = true;
          continue;
        }
        for (int op : added)
          blocked[op] = false;
        update();
      }
    return any;
  }

  /// How an op can pass on a sum that some operands of a linear set have: what
  /// has none becomes partial for nothing, each element on the first rank
  /// alone.
  struct Join {
    int linearSet;
    std::vector<int> carriers;
    AxesId axes;

    Passing getPassing() const { return {axes, ReduceKind::Sum, linearSet}; }
  };
  /// `axesOf`: over which the sum is that a tensor brings, if it is one.
  template <typename AxesOf>
  std::optional<Join> findJoin(int op, AxesOf axesOf) const {
    const GraphOp &graphOp = graph.ops[op];
    if (state.passing[op].axes != LayoutTable::noAxes ||
        state.ownReduction(op) || graphOp.results.size() != 1)
      return std::nullopt;
    for (size_t s = 0; s < graphOp.rule.linear.size(); ++s) {
      const std::vector<int> &set = graphOp.rule.linear[s];
      Join join{static_cast<int>(s), {}, LayoutTable::noAxes};
      for (int operand : set) {
        AxesId axes = axesOf(graphOp.operands[operand]);
        if (axes == LayoutTable::noAxes)
          continue;
        if (join.carriers.empty())
          join.axes = axes;
        join.carriers.push_back(operand);
      }
      auto joins = [&](int operand) {
        int tensor = graphOp.operands[operand];
        AxesId axes = axesOf(tensor);
        if (axes != LayoutTable::noAxes)
          return axes == join.axes;
        // Reduced for others, it can still be added as it came.
        return partial[tensor].isNone() ||
               partial[tensor] == Partial{join.axes, ReduceKind::Sum};
      };
      if (!join.carriers.empty() && !state.splitsOver(op, join.axes) &&
          std::all_of(set.begin(), set.end(), joins) &&
          staysSmall(op, join.carriers))
        return join;
    }
    return std::nullopt;
  }

  /// What ops pass, in topological order.
  using Changes = std::vector<std::pair<int, Passing>>;

  /// Gives an op something to pass, and those behind it what follows, if they
  /// passed nothing before.
  Changes pass(int first, const Passing &passing) {
    Changes changes;
    std::set<int> open{state.places[first]};
    while (!open.empty()) {
      int op = state.order[*open.begin()];
      open.erase(open.begin());
      if (blocked[op] || state.passing[op].axes != LayoutTable::noAxes)
        continue;
      Passing found = op == first ? passing : findPassing(op);
      if (found.axes == LayoutTable::noAxes)
        continue;
      changes.emplace_back(op, found);
      setPassing(op, found);
      for (int result : graph.ops[op].results)
        for (const Use &use : state.uses[result])
          if (use.op >= 0)
            open.insert(state.places[use.op]);
    }
    return changes;
  }

  /// Whether a result is a sum that is read outside of the program, too, which
  /// gets it reduced.
  bool leaves(int op) const {
    const std::vector<int> &results = graph.ops[op].results;
    return std::any_of(results.begin(), results.end(), [&](int result) {
      const std::vector<Use> &uses = state.uses[result];
      return !partial[result].isNone() &&
             std::any_of(uses.begin(), uses.end(),
                         [](const Use &use) { return use.op < 0; });
    });
  }

  /// Passes sums through what adds something whole to them, where what is left
  /// behind that costs less to reduce. Each is decided alone, in program order.
  void joinWholes() {
    for (int op : state.order) {
      std::optional<Join> join = findJoin(op, [&](int tensor) {
        const Partial &sum = partial[tensor];
        return sum.kind == ReduceKind::Sum ? sum.axes : LayoutTable::noAxes;
      });
      if (blocked[op] || !join)
        continue;
      Changes changes = pass(op, join->getPassing());
      Reach reach;
      bool isInside = true;
      for (const auto &[changed, passing] : changes) {
        isInside &= !leaves(changed);
        for (auto *tensors :
             {&graph.ops[changed].operands, &graph.ops[changed].results})
          reach.tensors.insert(tensors->begin(), tensors->end());
      }
      double seconds = isInside ? secondsOf(reach) : 0;
      for (const auto &[changed, passing] : changes)
        setPassing(changed, {});
      if (isInside && seconds < secondsOf(reach))
        for (const auto &[changed, passing] : changes)
          setPassing(changed, passing);
    }
  }

  /// Read once, inside the program, and as it is made.
  bool singleUse(int tensor) const {
    return state.uses[tensor].size() == 1 && state.uses[tensor][0].op >= 0 &&
           !state.isPinned(tensor);
  }

  /// Passes sums on to where they meet others: a bias or a residual is added to
  /// one rank's addend alone, and one reduction behind the addition does for
  /// two before it. A sum that comes to nobody else (`Lazy`) waits with the ops
  /// that it would have to pass; only when it meets another one, or less than
  /// half of it is left, do they pass it.
  void meetLater() {
    std::vector<std::optional<Lazy>> lazy(graph.tensors.size());
    auto setLazy = [&](int op) {
      const std::vector<int> &results = graph.ops[op].results;
      for (size_t r = 0; r < results.size(); ++r) {
        const Partial &sum = partial[results[r]];
        if (!sum.isNone() && sum.kind == ReduceKind::Sum &&
            singleUse(results[r]))
          lazy[results[r]] =
              Lazy{sum.axes, elementsOf({op, static_cast<int>(r)}), {}};
      }
    };
    for (int op : state.order) {
      setLazy(op);
      std::optional<Join> join = findJoin(op, [&](int tensor) {
        return lazy[tensor] ? lazy[tensor]->axes : LayoutTable::noAxes;
      });
      if (!join)
        continue;
      const GraphOp &graphOp = graph.ops[op];
      // Two have met: everything that they waited behind passes them on, as
      // what one did that is small now. Else one alone waits on, here too, as
      // long as nobody else reads it.
      int64_t elements = lazy[graphOp.operands[join->carriers[0]]]->elements;
      if (join->carriers.size() > 1 || 2 * elementsOf({op, 0}) <= elements) {
        for (int operand : join->carriers)
          for (auto [link, linkSet] : lazy[graphOp.operands[operand]]->chain)
            setPassing(link, {join->axes, ReduceKind::Sum, linkSet});
        setPassing(op, join->getPassing());
        setLazy(op);
      } else if (int result = graphOp.results[0]; singleUse(result)) {
        lazy[result] = lazy[graphOp.operands[join->carriers[0]]];
        lazy[result]->chain.push_back({op, join->linearSet});
      }
    }
  }

  State &state;
  const Graph &graph;
  LayoutTable &table;
  std::vector<bool> blocked;
  std::vector<Partial> partial;
};

} // namespace

void passPartialSums(State &state) { PartialSums(state).run(); }

} // namespace ax::sharding::detail
