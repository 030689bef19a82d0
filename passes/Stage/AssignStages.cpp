//===- AssignStages.cpp - Which pipeline stage does which operation -------===//
//
// Operations keep their program order; a stage is a run of them. Cuts are
// chosen by dynamic programming: the dearest stage, with the values it must
// send, is as cheap as can be, and of equal choices the most even one.
//
//===----------------------------------------------------------------------===//
#include "../Placed.h"
#include "ax/Cost/StageCost.h"
#include "ax/Dialect/Actions.h"
#include "ax/Passes/Passes.h"

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
    int64_t stages = plan.getMesh().axisSize("pipe") * virtualStages;
    if (trains(plan))
      return;
    for (ProgramOp program : plan.getBody().getOps<ProgramOp>())
      if (failed(assign(program, stages)))
        return signalPassFailure();
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
  SmallVector<size_t> balancedCuts(int64_t stages);
  void warnOfIdle(ProgramOp program, ArrayRef<size_t> cuts);

  /// Operations that stand in one place; loads and constants are everywhere.
  SmallVector<Operation *> ops;
  /// Seconds of ops[0 .. i).
  SmallVector<double> before;
  /// Bytes that cross a cut before ops[i].
  SmallVector<int64_t> crossing;
};

} // namespace

/// Of one micro-batch on one rank; of all of it before the Shard phase.
static double secondsOf(Operation *op, const sharding::Mesh &mesh,
                        const cost::Machine &machine) {
  auto collective = dyn_cast<CollectiveOpInterface>(op);
  if (!collective || !sharding::communicates(collective.getStepKind()))
    return cost::seconds(op, mesh, machine);
  return cost::collectiveSeconds(collective, mesh, machine);
}

LogicalResult AssignStages::assign(ProgramOp program, int64_t stages) {
  ops.clear();
  llvm::DenseMap<Operation *, size_t> position;
  for (Operation &op : program.getBody().front().without_terminator())
    if (!isa<LoadOp, ConstantOp>(op)) {
      position[&op] = ops.size();
      ops.push_back(&op);
    }
  // One stage may be empty: outputs that are constants.
  if (stages > 1 && static_cast<int64_t>(ops.size()) < stages)
    return program.emitError("the program has ")
           << ops.size() << " operations, too few for " << stages
           << " pipeline stages: use a smaller --pp";

  cost::Machine machine;
  sharding::Mesh mesh = getMesh(program);
  before.assign(1, 0);
  crossing.assign(ops.size() + 2, 0);
  for (auto [i, op] : llvm::enumerate(ops)) {
    before.push_back(before.back() + secondsOf(op, mesh, machine));
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

  SmallVector<size_t> cuts;
  if (cut.empty()) {
    cuts = balancedCuts(stages);
    warnOfIdle(program, cuts);
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
  }
  return success();
}

void AssignStages::warnOfIdle(ProgramOp program, ArrayRef<size_t> cuts) {
  constexpr double leastShare = 0.1;
  double even = before.back() / static_cast<double>(cuts.size() + 1);
  int64_t idle = 0;
  size_t begin = 0;
  for (size_t stage = 0; stage <= cuts.size(); ++stage) {
    size_t end = stage < cuts.size() ? cuts[stage] : ops.size();
    idle += before[end] - before[begin] < leastShare * even;
    begin = end;
  }
  if (idle)
    program.emitWarning() << idle << " of " << cuts.size() + 1
                          << " pipeline stages have next to nothing to do: "
                             "use a smaller --pp";
}

FailureOr<SmallVector<size_t>> AssignStages::namedCuts(ProgramOp program,
                                                       int64_t stages) {
  if (static_cast<int64_t>(cut.size()) != stages - 1)
    return program.emitError("--cut names ")
           << cut.size() << " places, which makes " << cut.size() + 1
           << " stages, not " << stages << ": give --pp=" << cut.size() + 1;
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

SmallVector<size_t> AssignStages::balancedCuts(int64_t stages) {
  size_t n = ops.size();
  cost::Machine machine;
  auto send = [&](size_t cut) {
    return cut == 0 || cut == n
               ? 0.0
               : machine.collectiveLatency +
                     crossing[cut] / machine.collectiveBytesPerSecond;
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
  for (size_t i = 1; i <= n; ++i)
    best[0][i] = {before[i] + send(i), squared(before[i] + send(i)), 0};
  for (int64_t s = 1; s < stages; ++s)
    for (size_t i = s + 1; i <= n; ++i)
      for (size_t cut = s; cut < i; ++cut) {
        const Choice &left = best[s - 1][cut];
        double stage = before[i] - before[cut] + send(i);
        Choice choice{std::max(left.worst, stage),
                      left.squares + squared(stage), cut};
        if (choice.worst < best[s][i].worst ||
            (choice.worst == best[s][i].worst &&
             choice.squares < best[s][i].squares))
          best[s][i] = choice;
      }
  SmallVector<size_t> cuts;
  size_t end = n;
  for (int64_t s = stages - 1; s > 0; --s) {
    end = best[s][end].cut;
    cuts.push_back(end);
  }
  return SmallVector<size_t>(llvm::reverse(cuts));
}
