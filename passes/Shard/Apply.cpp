//===- Apply.cpp - Layouts and collectives into the program ---------------===//
#include "Apply.h"

#include "../StageAndAction.h"
#include "ax/Cost/OpCost.h"
#include "ax/Sharding/Digits.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace ax;
using namespace ax::sharding;

static Value createStep(OpBuilder &builder, Location loc, const Step &step,
                        Value operand, const Mesh &mesh, StringAttr because) {
  Type type = withLayout(tensorType(operand), step.result, mesh);
  AxesAttr axes = AxesAttr::get(builder.getContext(), step.axes, mesh);
  auto create = [&](auto tag) -> Value {
    return decltype(tag)::create(builder, loc, type, operand, axes,
                                 communicates(step.kind) ? because : nullptr)
        ->getResult(0);
  };
  switch (step.kind) {
  case StepKind::AllSlice:
    return create(AllSliceOp());
  case StepKind::AllGather:
    return create(AllGatherOp());
  case StepKind::AllToAll:
    return create(AllToAllOp());
  case StepKind::ReduceScatter:
    return create(ReduceScatterOp());
  case StepKind::AllReduce:
    return create(AllReduceOp());
  case StepKind::CollectivePermute:
    return create(CollectivePermuteOp());
  case StepKind::ToPartial:
    return create(ToPartialOp());
  }
  llvm_unreachable("unknown step");
}

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

/// Sums over slices in time by themselves: before all else, so that the rest is
/// done once a step; or after it, where what remains of it is smaller (`late`,
/// and something is scattered).
static std::vector<Step> withTimeApart(const Reshard &reshard, const Mesh &mesh,
                                       bool late) {
  const Layout &to = reshard.steps.back().result;
  SubAxes time = inTime(withoutAxes(reshard.from.partial, to.partial), mesh);
  if (time.empty() || reshard.from.partialKind != ReduceKind::Sum)
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

/// The layout before it is cut into slices done one after another: a state is
/// the same for every micro-batch.
static Layout withoutTime(Layout layout, const Mesh &mesh) {
  for (DimLayout &dim : layout.dims) {
    SubAxes inTime;
    for (const SubAxis &axis : dim.axes())
      if (mesh.isInTime(axis))
        inTime.push_back(axis);
    if (!inTime.empty())
      dim = unsplit(dim, inTime).value_or(DimLayout::whole(dim.size()));
  }
  return canonicalize(layout);
}

/// What is stored gets the layout of its state.
static void applyToStores(ProgramOp program, const SymbolTable &states,
                          const Mesh &mesh, Resharder &resharder) {
  for (auto store : program.getBody().getOps<StoreOp>()) {
    auto state = states.lookup<StateOp>(store.getState());
    Layout wanted = getLayout(state.getTensorType(), mesh);
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

/// Before which operation each reshard stands: shared results start others, so
/// it is the first of all that use what comes of it.
static std::vector<Operation *> firstUsersOf(const Propagation &found,
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

LogicalResult ax::applyLayouts(ProgramOp program, const ShardGraph &graph,
                               const Propagation &found, const Mesh &mesh,
                               Resharder &resharder, int64_t zero) {
  MLIRContext *context = program.getContext();
  Block &body = program.getBody().front();
  auto output = cast<ReturnOp>(body.getTerminator());

  bool trains = !body.getOps<StoreOp>().empty();
  SymbolTable states(program->getParentOfType<PlanOp>());

  // As ops find it, which is as produced but for state split in time.
  std::vector<Value> produced(graph.values.begin(), graph.values.end());
  for (auto [i, value] : llvm::enumerate(produced)) {
    RankedTensorType type =
        withLayout(tensorType(value), found.tensors[i], mesh);
    auto load = value.getDefiningOp<LoadOp>();
    if (!load) {
      value.setType(type);
      continue;
    }
    Layout stored = withoutTime(found.tensors[i], mesh);
    RankedTensorType storedType = withLayout(type, stored, mesh);
    value.setType(storedType);
    states.lookup<StateOp>(load.getState())
        .setTypeAttr(TypeAttr::get(storedType));
    if (storedType == type)
      continue;
    OpBuilder builder(load->getBlock(), std::next(load->getIterator()));
    std::optional<Step> slice = identifyStep(stored, found.tensors[i]);
    Value part =
        createStep(builder, load.getLoc(), *slice, value, mesh, nullptr);
    value.replaceAllUsesExcept(part, part.getDefiningOp());
    value = part;
  }

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
    StringAttr because = reshard.cause.empty()
                             ? StringAttr()
                             : StringAttr::get(context, reshard.cause);
    for (const Step &step : withTimeApart(reshard, mesh, zero > 1)) {
      bool isSum = trains && step.kind == StepKind::AllReduce &&
                   reshard.from.partialKind == ReduceKind::Sum;
      if (!inTime(step.axes, mesh).empty() && step.kind != StepKind::AllSlice &&
          !isSum)
        return first->emitError()
               << "needs all of the batch at once (" << toString(step.kind)
               << " in time): run this model with --micro-batches=1";
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

  applyToStores(program, states, mesh, resharder);

  SmallVector<Type> outputs(output.getOperandTypes());
  SmallVector<Type> inputs(body.getArgumentTypes());
  program.setFunctionType(FunctionType::get(context, inputs, outputs));
  return success();
}
