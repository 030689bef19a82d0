//===- AssignStages.cpp - Which pipeline stage does which operation -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operations keep their program order; a stage is a run of them. Cuts are
// chosen by dynamic programming: the dearest stage, with the values it must
// send, is as cheap as can be, and of equal choices the most even one.
//
// Programs of one plan share its states, and where a state is stored all that
// hold it have to be. So the programs behind the first one, which may have
// other operations (dropout is in training only), are cut such that a state is
// used where it was before:
//
//   @main   w0  dropout | w1  w2      cut by cost
//   @eval   w0 | w1  w2               w0 w1 | w2 would be as even
//
// That may not be possible: where a stage of the first has no state, there may
// be nothing for it in the others (of `w0 | dropout | w1` for instance), and
// what one operation of them uses may be in several stages. Then all are cut
// again, a state in each stage, and never between states that others use
// together.
//
//===----------------------------------------------------------------------===//
#include "ax/Cost/StageCost.h"
#include "ax/Dialect/Actions.h"
#include "ax/Dialect/MeshAxes.h"
#include "ax/Dialect/StageAndAction.h"
#include "ax/Passes/Passes.h"

#include "llvm/ADT/SetVector.h"

#include <cmath>
#include <limits>
#include <numeric>

namespace ax {
#define GEN_PASS_DEF_ASSIGNSTAGES
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;

namespace {

struct AssignStages : ax::impl::AssignStagesBase<AssignStages> {
  using AssignStagesBase::AssignStagesBase;

  void runOnOperation() override {
    PlanOp plan = getOperation();
    int64_t stages = plan.getMesh().axisSize(meshAxis::pipe) * virtualStages;
    if (trains(plan))
      return;
    SmallVector<ProgramOp> programs(plan.getBody().getOps<ProgramOp>());
    for (bool again : {false, true}) {
      stateInEachStage = again;
      together.clear();
      if (again)
        for (ProgramOp program : llvm::drop_begin(programs))
          noteTogether(program);
      held.clear();
      idle.clear();
      misfit = {};
      for (ProgramOp program : programs)
        if (!misfit && failed(assign(program, stages)))
          return signalPassFailure();
      if (misfit)
        continue;
      for (auto [program, count] : idle)
        program.emitWarning()
            << count << " of " << stages << " pipeline stages "
            << (count == 1 ? "has" : "have")
            << " next to nothing to do: use a smaller --pp";
      return;
    }
    misfit.emitError("no ")
        << stages << " pipeline stages of @" << misfit.getSymName()
        << " have the weights that those of the programs before it have: "
           "name the operations to cut after with --cut";
    signalPassFailure();
  }

  /// Its backward pass was made for the stages that it has, and its states are
  /// where they are.
  static bool trains(PlanOp plan) {
    return plan
        .walk([](Operation *op) {
          return op->hasAttr(kAction) ? WalkResult::interrupt()
                                      : WalkResult::advance();
        })
        .wasInterrupted();
  }
  LogicalResult assign(ProgramOp program, int64_t stages);
  FailureOr<SmallVector<size_t>> namedCuts(ProgramOp program, int64_t stages);
  std::optional<SmallVector<size_t>> balancedCuts(int64_t stages);
  std::vector<std::vector<int64_t>> countForeign(int64_t stages) const;
  void findUsedStates(ProgramOp program);
  void noteTogether(ProgramOp program);
  llvm::DenseSet<size_t> findForbiddenCuts() const;
  void noteIdle(ProgramOp program, ArrayRef<size_t> cuts);

  /// Operations that stand in one place; loads and constants are everywhere.
  SmallVector<Operation *> ops;
  /// Seconds of ops[0 .. i).
  SmallVector<double> before;
  /// What ops[i] costs more behind a cut: nothing, unless it is of an epilogue.
  SmallVector<double> apart;
  /// Bytes that cross a cut before ops[i].
  SmallVector<int64_t> crossing;
  sharding::Mesh mesh;
  cost::Machine machine;
  /// The states that each of `ops` uses.
  SmallVector<llvm::SetVector<StringAttr>> used;
  /// The stages that use each state, in the programs so far.
  llvm::DenseMap<StringAttr, llvm::DenseSet<int64_t>> held;
  bool stateInEachStage = false;
  /// Sets of states that no cut is to separate.
  std::vector<llvm::SetVector<StringAttr>> together;
  /// The first program that cannot be cut so; null: none.
  ProgramOp misfit;
  /// How many stages have nothing to do.
  SmallVector<std::pair<ProgramOp, int64_t>> idle;
};

} // namespace

/// Returns the time of one micro-batch on one rank; of all of it before the
/// Shard phase.
static double secondsOf(Operation *op, const sharding::Mesh &mesh,
                        const cost::Machine &machine) {
  auto collective = dyn_cast<CollectiveOpInterface>(op);
  if (!collective || !sharding::communicates(collective.getStepKind()))
    return cost::secondsInPlace(op, mesh, machine);
  return cost::collectiveSeconds(collective, mesh, machine);
}

LogicalResult AssignStages::assign(ProgramOp program, int64_t stages) {
  ops.clear();
  llvm::DenseMap<Operation *, size_t> position;
  for (Operation &op : program.getBody().front().without_terminator())
    if (!isSource(&op)) {
      // An earlier cut does not take a product's epilogue from it.
      op.removeAttr(kStage);
      position[&op] = ops.size();
      ops.push_back(&op);
    }
  // One stage may be empty: outputs that are constants.
  if (stages > 1 && static_cast<int64_t>(ops.size()) < stages)
    return program.emitError("operations of the program: ")
           << ops.size() << ", too few for " << stages
           << " pipeline stages: use a smaller --pp";

  machine = cost::machineOf(program);
  mesh = getMesh(program);
  before.assign(1, 0);
  apart.clear();
  crossing.assign(ops.size() + 2, 0);
  for (auto [i, op] : llvm::enumerate(ops)) {
    before.push_back(before.back() + secondsOf(op, mesh, machine));
    apart.push_back(findProduct(op, *machine.library)
                        ? cost::seconds(op, mesh, machine)
                        : 0);
    for (Value value : op->getResults()) {
      size_t last = i;
      for (Operation *user : value.getUsers()) {
        auto it = position.find(user);
        last = std::max(last, it == position.end() ? i : it->second);
      }
      if (last == i)
        continue;
      // Where it begins to cross, and where it ends.
      int64_t bytes = cost::localBytes(tensorType(value), mesh);
      crossing[i + 1] += bytes;
      crossing[last + 1] -= bytes;
    }
  }
  std::partial_sum(crossing.begin(), crossing.end(), crossing.begin());
  findUsedStates(program);

  SmallVector<size_t> cuts;
  if (cut.empty()) {
    std::optional<SmallVector<size_t>> balanced = balancedCuts(stages);
    if (!balanced) {
      misfit = program;
      return success();
    }
    cuts = *balanced;
    noteIdle(program, cuts);
  } else {
    FailureOr<SmallVector<size_t>> named = namedCuts(program, stages);
    if (failed(named))
      return failure();
    cuts = *named;
  }
  Builder builder(program.getContext());
  int64_t stage = 0;
  for (auto [i, op] : llvm::enumerate(ops)) {
    while (stage < static_cast<int64_t>(cuts.size()) && i >= cuts[stage])
      ++stage;
    op->setAttr(kStage, builder.getI64IntegerAttr(stage));
    for (StringAttr state : used[i])
      held[state].insert(stage);
  }
  return success();
}

/// What depends on states alone is computed wherever it is used: who uses it
/// uses the states.
void AssignStages::findUsedStates(ProgramOp program) {
  llvm::DenseMap<Value, llvm::SetVector<StringAttr>> everywhere;
  used.clear();
  for (Operation &op : program.getBody().front().without_terminator()) {
    llvm::SetVector<StringAttr> states;
    for (Value operand : op.getOperands())
      states.insert_range(everywhere.lookup(operand));
    if (auto load = dyn_cast<LoadOp>(op))
      states.insert(load.getStateAttr().getAttr());
    bool isEverywhere = llvm::all_of(op.getOperands(), [&](Value operand) {
      return everywhere.contains(operand);
    });
    if (isEverywhere)
      for (Value result : op.getResults())
        everywhere[result] = states;
    if (!isSource(&op))
      used.push_back(isEverywhere ? llvm::SetVector<StringAttr>() : states);
  }
}

void AssignStages::noteTogether(ProgramOp program) {
  findUsedStates(program);
  for (const llvm::SetVector<StringAttr> &states : used)
    if (states.size() > 1)
      together.push_back(states);
}

/// Those that separate the nearest uses of such states. A state that has uses
/// far from each other (a tied embedding) is in several stages.
llvm::DenseSet<size_t> AssignStages::findForbiddenCuts() const {
  llvm::DenseMap<StringAttr, SmallVector<size_t>> uses;
  for (auto [i, states] : llvm::enumerate(used))
    for (StringAttr state : states)
      uses[state].push_back(i);
  llvm::DenseSet<size_t> forbidden;
  for (const llvm::SetVector<StringAttr> &states : together) {
    std::optional<std::pair<size_t, size_t>> nearest;
    for (size_t use : uses.lookup(states.front())) {
      std::pair<size_t, size_t> span(use, use);
      for (StringAttr state : states) {
        SmallVector<size_t> places = uses.lookup(state);
        auto distance = [&](size_t place) {
          return place < use ? use - place : place - use;
        };
        auto *closest = llvm::min_element(places, [&](size_t a, size_t b) {
          return distance(a) < distance(b);
        });
        if (closest != places.end())
          span = {std::min(span.first, *closest),
                  std::max(span.second, *closest)};
      }
      if (!nearest ||
          span.second - span.first < nearest->second - nearest->first)
        nearest = span;
    }
    if (nearest)
      for (size_t cut = nearest->first + 1; cut <= nearest->second; ++cut)
        forbidden.insert(cut);
  }
  return forbidden;
}

/// [stage][i]: of ops[0 .. i), those that use a state which that stage does not
/// hold, though others do.
std::vector<std::vector<int64_t>>
AssignStages::countForeign(int64_t stages) const {
  std::vector<std::vector<int64_t>> result;
  for (int64_t stage = 0; stage < stages; ++stage) {
    std::vector<int64_t> &count = result.emplace_back(1, 0);
    for (const llvm::SetVector<StringAttr> &states : used)
      count.push_back(
          count.back() + llvm::any_of(states, [&](StringAttr state) {
            auto stages = held.find(state);
            return stages != held.end() && !stages->second.contains(stage);
          }));
  }
  return result;
}

void AssignStages::noteIdle(ProgramOp program, ArrayRef<size_t> cuts) {
  constexpr double leastShare = 0.1;
  double even = before.back() / static_cast<double>(cuts.size() + 1);
  int64_t count = 0;
  size_t begin = 0;
  for (size_t stage = 0; stage <= cuts.size(); ++stage) {
    size_t end = stage < cuts.size() ? cuts[stage] : ops.size();
    count += before[end] - before[begin] < leastShare * even;
    begin = end;
  }
  if (count)
    idle.emplace_back(program, count);
}

FailureOr<SmallVector<size_t>> AssignStages::namedCuts(ProgramOp program,
                                                       int64_t stages) {
  if (static_cast<int64_t>(cut.size()) != stages - 1)
    return program.emitError("--cut names ")
           << cut.size() << (cut.size() == 1 ? " place" : " places")
           << ", which makes " << cut.size() + 1 << " stages, not " << stages
           << ": give --pp=" << cut.size() + 1;
  SmallVector<size_t> cuts;
  for (const std::string &name : cut) {
    size_t end = 0;
    for (auto [i, op] : llvm::enumerate(ops))
      if (llvm::is_contained(getNodeNames(op), name))
        end = i + 1;
    if (end == 0)
      return program.emitError("the program has no node named '")
             << name << "' to cut after";
    if (!cuts.empty() && end <= cuts.back())
      return program.emitError("cut after '")
             << name << "' does not come after the cut before it";
    if (end >= ops.size())
      return program.emitError("cut after '")
             << name << "' leaves the last stage empty";
    cuts.push_back(end);
  }
  return cuts;
}

std::optional<SmallVector<size_t>> AssignStages::balancedCuts(int64_t stages) {
  // There may be no operations at all.
  if (stages == 1)
    return SmallVector<size_t>();
  size_t n = ops.size();
  std::vector<std::vector<int64_t>> foreign = countForeign(stages);
  std::vector<int64_t> users(1, 0);
  for (const llvm::SetVector<StringAttr> &states : used)
    users.push_back(users.back() + !states.empty());
  auto mayDo = [&](int64_t stage, size_t begin, size_t end) {
    return foreign[stage][begin] == foreign[stage][end];
  };
  llvm::DenseSet<size_t> forbidden = findForbiddenCuts();
  auto isStage = [&](size_t begin, size_t end) {
    return !forbidden.contains(begin) &&
           (!stateInEachStage || users[begin] < users[end]);
  };
  int64_t coordinates = mesh.axisSize(meshAxis::pipe);
  SmallVector<Link> links;
  for (int64_t s = 0; s < stages; ++s)
    links.push_back(cost::linkBetween(s % coordinates, (s + 1) % coordinates,
                                      mesh, machine));
  // What leaves a stage that ends with a cut.
  auto send = [&](int64_t stage, size_t cut) {
    return cut == n ? 0.0 : links[stage].seconds(crossing[cut]);
  };
  auto squared = [](double x) { return x * x; };
  struct Choice {
    double worst = std::numeric_limits<double>::infinity();
    /// Sum of squares: of stages as dear as the dearest may be, even ones.
    double squares = 0;
    size_t cut = 0;
  };
  // best[s][i]: ops[0 .. i) in s + 1 stages.
  std::vector<std::vector<Choice>> best(stages, std::vector<Choice>(n + 1));
  for (size_t i = 1; i <= n && mayDo(0, 0, i); ++i)
    if (isStage(0, i))
      best[0][i] = {before[i] + send(0, i), squared(before[i] + send(0, i)), 0};
  for (int64_t s = 1; s < stages; ++s)
    for (size_t i = s + 1; i <= n; ++i)
      for (size_t cut = i - 1; cut >= size_t(s) && mayDo(s, cut, i); --cut) {
        if (!isStage(cut, i))
          continue;
        const Choice &left = best[s - 1][cut];
        double stage = before[i] - before[cut] + apart[cut] + send(s, i);
        Choice choice{std::max(left.worst, stage),
                      left.squares + squared(stage), cut};
        // The earliest of equal cuts is taken.
        if (choice.worst < best[s][i].worst ||
            (choice.worst == best[s][i].worst &&
             choice.squares <= best[s][i].squares))
          best[s][i] = choice;
      }
  if (std::isinf(best[stages - 1][n].worst))
    return std::nullopt;
  SmallVector<size_t> cuts;
  size_t end = n;
  for (int64_t s = stages - 1; s > 0; --s) {
    end = best[s][end].cut;
    cuts.push_back(end);
  }
  return SmallVector<size_t>(llvm::reverse(cuts));
}
