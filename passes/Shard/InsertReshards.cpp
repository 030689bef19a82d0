//===- InsertReshards.cpp - Collectives where layouts differ --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../Pipeline/Placement.h"
#include "CreateStep.h"
#include "PinLists.h"
#include "ShardAnalysis.h"
#include "Shardings.h"
#include "ax/Cost/OpCost.h"
#include "ax/Dialect/Pins.h"
#include "ax/Passes/Passes.h"
#include "ax/Sharding/Digits.h"

#include "llvm/ADT/DenseSet.h"

namespace ax {
#define GEN_PASS_DEF_INSERTRESHARDS
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;
using namespace ax::sharding;

/// Reductions belong to the stage that made the addends, so that whole values
/// travel; the rest to the stage that uses the result.
static void place(Operation *made, const Step &step, Operation *producer,
                  Operation *user) {
  bool early =
      step.kind == StepKind::AllReduce || step.kind == StepKind::ReduceScatter;
  if (Operation *op = early && producer ? producer : user)
    copyStageAndAction(op, made);
  if (producer && !made->hasAttr(kStage))
    copyStageAndAction(producer, made);
}

/// `layout` with `axes` among its partial ones, or without them.
static Layout withPartial(Layout layout, const SubAxes &axes, bool there) {
  layout.partial = withoutAxes(layout.partial, axes);
  if (there)
    layout.partial.insert(layout.partial.end(), axes.begin(), axes.end());
  return canonicalize(std::move(layout));
}

/// Whether slices in time make it of what they have had before.
static bool isKeptInTime(const Layout &layout) {
  return layout.partialKind != ReduceKind::Min;
}

/// Reductions over slices in time by themselves: before all else, so that the
/// rest is done once a step; or after it, where what remains of it is smaller
/// (`late`, and something is scattered).
static std::vector<Step> withTimeApart(const Reshard &reshard, const Mesh &mesh,
                                       bool late) {
  const Layout &to = reshard.steps.back().result;
  SubAxes time = inTime(withoutAxes(reshard.from.partial, to.partial), mesh);
  if (time.empty() || !isKeptInTime(reshard.from))
    return reshard.steps;
  late &= llvm::any_of(reshard.steps, [](const Step &step) {
    return step.kind == StepKind::ReduceScatter;
  });
  std::vector<Step> steps;
  if (!late)
    steps.push_back({StepKind::AllReduce, time, -1, -1,
                     withPartial(reshard.from, time, false)});
  for (Step step : reshard.steps) {
    step.axes = withoutAxes(step.axes, time);
    step.result = withPartial(std::move(step.result), time, late);
    if (!step.axes.empty())
      steps.push_back(std::move(step));
  }
  if (late)
    steps.push_back({StepKind::AllReduce, time, -1, -1, to});
  return steps;
}

/// Returns before which operation each reshard stands: shared results start
/// others, so it is the first of all that use what comes of it.
static std::vector<Operation *> firstUsersOf(const Resharding &found,
                                             const ShardGraph &graph,
                                             Operation *output) {
  std::vector<Operation *> first(found.reshards.size(), output);
  auto consider = [&](size_t reshard, Operation *user) {
    if (user->isBeforeInBlock(first[reshard]))
      first[reshard] = user;
  };
  for (size_t i = first.size(); i-- > 0;) {
    for (const Use &use : found.reshards[i].uses)
      if (use.op >= 0)
        consider(i, graph.ops[use.op]);
    if (int source = found.reshards[i].source; source >= 0)
      consider(source, first[i]);
  }
  return first;
}

namespace {

/// Puts what was decided into one program.
class Inserter {
public:
  Inserter(ProgramOp program, const ShardGraph &graph,
           const Shardings &shardings, const Mesh &mesh, int64_t zero)
      : program(program), graph(graph), shardings(shardings), mesh(mesh),
        zero(zero), states(program->getParentOfType<PlanOp>()),
        output(cast<ReturnOp>(program.getBody().front().getTerminator())),
        produced(graph.values.begin(), graph.values.end()) {}

  /// Types of all values, and of the states, of which `stored` are already.
  LogicalResult setTypes(llvm::DenseSet<Operation *> &stored);
  LogicalResult insert(const Resharding &found);
  /// What is stored gets the layout of its state.
  void insertAtStores(Resharder &resharder);
  /// Removes what the steps before have written.
  void finish();

private:
  /// An error at `op`, for which micro-batches would have to be put together.
  LogicalResult failInTime(Operation *op, const Step &step, StringRef cause);
  LogicalResult setStateType(LoadOp load, RankedTensorType type,
                             llvm::DenseSet<Operation *> &stored);

  ProgramOp program;
  const ShardGraph &graph;
  const Shardings &shardings;
  const Mesh &mesh;
  int64_t zero;
  SymbolTable states;
  ReturnOp output;
  /// The tensors as ops find them, which is as produced but for state split in
  /// time.
  std::vector<Value> produced;
};

} // namespace

LogicalResult Inserter::failInTime(Operation *op, const Step &step,
                                   StringRef cause) {
  InFlightDiagnostic error = op->emitError();
  error << "needs all of the batch at once (" << toString(step.kind)
        << " in time" << (cause.empty() ? "" : ", because ") << cause
        << "): run this model with --micro-batches=1";
  for (auto [whole, part] : llvm::zip_equal(graph.values, produced)) {
    auto load = whole.getDefiningOp<LoadOp>();
    if (load && part != whole &&
        states.lookup<StateOp>(load.getState()).getTrainable())
      return error << ", or, as '" << load.getState()
                   << "' has a part for each sample of the batch, with "
                      "--frozen="
                   << load.getState();
  }
  return error;
}

LogicalResult Inserter::setStateType(LoadOp load, RankedTensorType type,
                                     llvm::DenseSet<Operation *> &stored) {
  auto state = states.lookup<StateOp>(load.getState());
  if (!stored.insert(state).second && state.getType() != type)
    return load.emitOpError("gives ")
           << type << ", and a load of the state before it " << state.getType();
  state.setTypeAttr(TypeAttr::get(type));
  return success();
}

LogicalResult Inserter::setTypes(llvm::DenseSet<Operation *> &stored) {
  std::vector<LayoutAttr> layouts;
  for (const Layout &layout : shardings.layouts)
    layouts.push_back(LayoutAttr::get(program.getContext(), layout, mesh));
  for (auto [i, value] : llvm::enumerate(produced)) {
    RankedTensorType whole = tensorType(value);
    auto type = RankedTensorType::get(whole.getShape(), whole.getElementType(),
                                      layouts[shardings.tensors[i]]);
    auto load = value.getDefiningOp<LoadOp>();
    if (!load) {
      value.setType(type);
      continue;
    }
    const Layout &used = shardings.tensor(i);
    Layout kept = withoutTime(used, mesh);
    RankedTensorType storedType = withLayout(type, kept, mesh);
    value.setType(storedType);
    if (failed(setStateType(load, storedType, stored)))
      return failure();
    if (storedType == type)
      continue;
    OpBuilder builder(load->getBlock(), std::next(load->getIterator()));
    std::optional<Step> slice = identifyStep(kept, used);
    Value part =
        createStep(builder, load.getLoc(), *slice, value, mesh, nullptr);
    value.replaceAllUsesExcept(part, part.getDefiningOp());
    value = part;
  }
  return success();
}

LogicalResult Inserter::insert(const Resharding &found) {
  const SmallVector<Value> returned(output.getOperands());
  const std::vector<Operation *> firstUsers =
      firstUsersOf(found, graph, output);
  std::vector<Value> results;
  for (const Reshard &reshard : found.reshards) {
    Value value =
        reshard.source < 0 ? produced[reshard.tensor] : results[reshard.source];
    Operation *producer = graph.values[reshard.tensor].getDefiningOp();
    Operation *first = firstUsers[results.size()];
    OpBuilder builder(first);
    Location loc = producer ? producer->getLoc() : first->getLoc();
    StringAttr because =
        reshard.cause.empty()
            ? StringAttr()
            : StringAttr::get(program.getContext(), reshard.cause);
    for (const Step &step : withTimeApart(reshard, mesh, zero > 1)) {
      bool isKept =
          step.kind == StepKind::AllReduce && isKeptInTime(reshard.from);
      if (!inTime(step.axes, mesh).empty() && step.kind != StepKind::AllSlice &&
          !isKept)
        return failInTime(first, step, reshard.cause);
      value = createStep(builder, loc, step, value, mesh, because);
      Operation *made = value.getDefiningOp();
      // Who uses it through another reshard may come before.
      place(made, step, producer, first == output ? nullptr : first);
    }
    results.push_back(value);
    for (const Use &use : reshard.uses) {
      if (use.op >= 0)
        graph.ops[use.op]->setOperand(use.operand, value);
      else
        for (auto [i, operand] : llvm::enumerate(returned))
          if (operand == produced[reshard.tensor])
            output.setOperand(i, value);
    }
  }
  return success();
}

void Inserter::insertAtStores(Resharder &resharder) {
  for (auto store : program.getBody().getOps<StoreOp>()) {
    auto state = states.lookup<StateOp>(store.getState());
    const Layout &wanted = getLayout(state.getTensorType(), mesh);
    Value value = store.getOperand();
    RankedTensorType type = tensorType(value);
    OpBuilder builder(store);
    auto because = builder.getStringAttr("it is stored as " +
                                         store.getState().str() + " is");
    for (const Step &step :
         resharder
             .plan(getLayout(type, mesh), wanted, cost::elementBytesOf(type))
             .steps) {
      value = createStep(builder, store.getLoc(), step, value, mesh, because);
      copyStageAndAction(store, value.getDefiningOp());
    }
    store.getOperandMutable().assign(value);
  }
}

void Inserter::finish() {
  auto clear = [](Value value) {
    for (StringRef name : {StringRef(kPins), StringRef(kSharding)})
      setShardAttr(value, name, nullptr);
  };
  llvm::for_each(graph.values, clear);
  program.setFunctionType(FunctionType::get(
      program.getContext(), program.getBody().getArgumentTypes(),
      output.getOperandTypes()));
}

namespace {
struct InsertReshards : ax::impl::InsertReshardsBase<InsertReshards> {
  using InsertReshardsBase::InsertReshardsBase;

  void runOnOperation() final {
    auto &shared = getAnalysis<ShardAnalysis>();
    llvm::DenseSet<Operation *> stored;
    for (ProgramOp program : getOperation().getBody().getOps<ProgramOp>())
      if (failed(insert(program, shared, stored)) ||
          failed(checkTime(program, shared.getMesh())))
        return signalPassFailure();
  }

  LogicalResult insert(ProgramOp program, ShardAnalysis &shared,
                       llvm::DenseSet<Operation *> &stored) {
    const Mesh &mesh = shared.getMesh();
    const ShardGraph *graph = shared.graphOf(program);
    if (!graph)
      return failure();
    FailureOr<Shardings> shardings = readShardings(*graph, mesh);
    if (failed(shardings))
      return failure();
    Propagator &propagator = shared.getPropagator();
    Resharding found =
        propagator.reshard(graph->graph, readPins(*graph, mesh), *shardings);
    if (found.fault) {
      InFlightDiagnostic error = graph->ops[found.fault->first]->emitOpError();
      if (StringRef node = getNodeName(graph->ops[found.fault->first]);
          !node.empty())
        error << "of node '" << node << "' ";
      return error << "has an " << kSharding
                   << " that its rule does not allow: " << found.fault->second;
    }
    Inserter inserter(program, *graph, *shardings, mesh, zero);
    if (failed(inserter.setTypes(stored)) || failed(inserter.insert(found)))
      return failure();
    inserter.insertAtStores(propagator.getResharder());
    inserter.finish();
    return success();
  }

  /// What cannot be cut into micro-batches is the strategy's fault, and said
  /// here, where that is known.
  static LogicalResult checkTime(ProgramOp program, const Mesh &mesh) {
    return mesh.numTimeSlices() > 1 ? Placement(program, mesh).run()
                                    : success();
  }
};
} // namespace
