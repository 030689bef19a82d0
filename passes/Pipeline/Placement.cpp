//===- Placement.cpp - Which list does which operation --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Forward and backward operations have their stage and are done for each
// micro-batch. What comes after a sum over micro-batches is done once a step:
// the update, and what of the backward pass works on whole gradients.
//
// Marks are where Train and Stage made the operation; what later phases insert
// has none, or that of its neighbour. So an operation's action is never earlier
// than those of what it reads, and one without a stage is in the last of
// theirs. One walk in program order is enough for that.
//
// An example, of a Linear in stage 1 that has the weight w:
//
//   t = transpose(w)              everywhere: each list that reads t makes it
//   y = linear(x, t)              F of stage 1, as marked
//   g = contract(x, dy)           B of stage 1, as marked
//   s = all_reduce(g) over micro  U: a sum over micro-batches
//   c = cast(s)                   U, though marked B: it reads s
//   store w, w - 0.1 c            U
//
// Were c done for each micro-batch, it would ask for a sum that is not there
// before the last. With --schedule=zero-bubble, g is W: no earlier stage waits
// for it, as one does for dx.
//
//===----------------------------------------------------------------------===//
#include "Placement.h"
#include "StageLists.h"
#include "ax/Dialect/MeshAxes.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace ax;

static std::optional<int64_t> markedStage(Operation *op) {
  if (auto stage = op->getAttrOfType<IntegerAttr>(kStage))
    return stage.getInt();
  return std::nullopt;
}

Placement::Placement(ProgramOp program, const sharding::Mesh &mesh,
                     const cost::PipelineSchedule *schedule)
    : program(program), mesh(mesh), schedule(schedule),
      ranks(mesh.axisSize(meshAxis::pipe)), stages(ranks) {
  for (Operation &op : program.getBody().front())
    stages = std::max(stages, markedStage(&op).value_or(0) + 1);
  stages = (stages + ranks - 1) / ranks * ranks;
}

/// Whether `op` adds up what micro-batches have: slices in time are an axis of
/// the mesh, so their sum is an all-reduce as any other.
static bool reducesOverTime(Operation *op, const sharding::Mesh &mesh) {
  auto collective = dyn_cast<CollectiveOpInterface>(op);
  return collective &&
         collective.getStepKind() == sharding::StepKind::AllReduce &&
         !inTime(collective.getMovedAxes().resolve(mesh), mesh).empty();
}

/// Returns the action that `op` has by itself, whatever its operands are.
Action Placement::ownAction(Operation *op) const {
  Action action = markedAction(op);
  if (isa<StoreOp>(op) || reducesOverTime(op, mesh))
    return Action::Update;
  // What gradients of several stages make.
  if (action != Action::Forward && stages > 1 && !markedStage(op))
    return Action::Update;
  return action;
}

/// Returns the weight, if any, of whose update `op` is a part, for messages: it
/// follows users that keep the shape, as an update is element-wise.
static StringRef updatedState(Operation *op) {
  auto plan = op->getParentOfType<PlanOp>();
  llvm::SetVector<Value> values(op->operand_begin(), op->operand_end());
  for (size_t i = 0; i < values.size(); ++i)
    for (Operation *user : values[i].getUsers()) {
      if (auto store = dyn_cast<StoreOp>(user))
        if (auto state = plan.lookupSymbol<StateOp>(store.getState());
            state && state.getTrainable())
          return store.getState();
      for (Value result : user->getResults())
        if (tensorType(result).getShape() == tensorType(values[i]).getShape())
          values.insert(result);
    }
  return "";
}

/// Fails where an update works on what is sliced in time: it has no
/// micro-batch, so that there would be nothing to take the slice of. E.g. a
/// learned position for each sample of the batch.
LogicalResult Placement::checkTime(Operation *op) const {
  auto isSliced = [&](Value value) {
    sharding::Layout layout = getLayout(tensorType(value), mesh);
    layout.partial.clear();
    return !inTime(layout.usedAxes(), mesh).empty();
  };
  if (llvm::none_of(op->getOperands(), isSliced) &&
      llvm::none_of(op->getResults(), isSliced))
    return success();
  InFlightDiagnostic error = op->emitError();
  if (StringRef state = updatedState(op); !state.empty())
    return error << "'" << state
                 << "' has a part for each sample of the batch, and is updated "
                    "as a whole: use --micro-batches=1, or --frozen="
                 << state;
  if (StringRef node = getNodeName(op); !node.empty())
    error << "'" << node << "' ";
  return error << "needs all of the batch at once: use --micro-batches=1";
}

/// What a step without a backward pass carries to the next waits for nothing
/// else: it is stored by the list that makes it, where that stage alone reads
/// the state. What another one reads is sent to it at the step's end, as an
/// update: e.g. the last stage's token, which the first begins with.
void Placement::storeWhereMade() {
  llvm::StringMap<std::set<int64_t>> readers;
  auto read = [&](Operation *op, int64_t stage) {
    forEachStateRead(op, *this,
                     [&](StringRef state) { readers[state].insert(stage); });
  };
  // An update that stores what another state was reads that one at the end.
  constexpr int64_t atEnd = -1;
  for (const auto &[op, action] : actions)
    read(op, isa<StoreOp>(op) ? atEnd : stageOfOp.lookup(op));
  // As `placeOutputs` has it.
  for (Value output : program.getBody().front().getTerminator()->getOperands())
    if (isEverywhere(output))
      read(output.getDefiningOp(), 0);
  for (auto &[op, action] : actions) {
    auto store = dyn_cast<StoreOp>(op);
    if (!store)
      continue;
    Operation *maker = store.getOperand().getDefiningOp();
    stageOfOp.erase(op);
    if (!maker || isEverywhere(maker))
      continue;
    int64_t stage = stageOfOp.lookup(maker);
    if (readers[store.getState()] != std::set<int64_t>{stage})
      continue;
    action = Action::Forward;
    stageOfOp[op] = stage;
  }
}

/// The states that steps without a backward pass change. What is made of them
/// is no weight, to be made wherever it is read.
llvm::DenseSet<Attribute> Placement::findCarried() {
  llvm::DenseSet<Attribute> carried;
  for (Operation &op : program.getBody().front()) {
    if (markedAction(&op) != Action::Forward)
      return {};
    if (auto store = dyn_cast<StoreOp>(op))
      carried.insert(store.getStateAttr());
  }
  return carried;
}

LogicalResult Placement::run() {
  llvm::DenseSet<Attribute> carried = findCarried();
  auto isAtHand = [&](Value value) {
    auto load = value.getDefiningOp<LoadOp>();
    return isEverywhere(value) &&
           !(load && carried.contains(load.getStateAttr()));
  };
  for (Operation &op : program.getBody().front().without_terminator()) {
    bool isUpdate = markedAction(&op) == Action::Update;
    if (isSource(&op) || (!isUpdate && !isa<StoreOp>(op) &&
                          llvm::all_of(op.getOperands(), isAtHand))) {
      everywhere.insert(&op);
      continue;
    }
    Action action = ownAction(&op);
    int64_t stage = 0;
    for (Value operand : op.getOperands())
      if (Operation *producer = operand.getDefiningOp();
          producer && !isEverywhere(producer)) {
        action = std::max(action, actionOf(producer));
        stage = std::max(stage, stageOfOp.lookup(producer));
      }
    actions[&op] = action;
    // An update without a stage has gradients of several, as a norm of all, or
    // is a number that all need, as the learning rate: each does it for itself.
    if (action != Action::Update || markedStage(&op))
      stageOfOp[&op] = markedStage(&op).value_or(stage);
    if (action == Action::Update && failed(checkTime(&op)))
      return failure();
  }
  if (stages > 1) {
    if (!carried.empty())
      storeWhereMade();
    for (Operation &op : program.getBody().front())
      if (failed(checkSums(&op)))
        return failure();
    if (schedule && schedule->splitsBackward())
      findWeightGradients();
    return success();
  }
  // Without a pipeline nobody waits between forward and backward, so one list
  // does both; and without micro-batches there is no sum to wait for, either.
  for (auto &[op, action] : actions)
    if (action != Action::Update || mesh.numTimeSlices() == 1) {
      action = Action::Forward;
      stageOfOp[op] = 0;
    }
  return success();
}

/// Fails where a sum over micro-batches is read by other lists for each of
/// these, too: between lists there is one of the two. E.g. a loss that is
/// divided by a weight, of which the gradient reads it.
LogicalResult Placement::checkSums(Operation *op) const {
  if (isEverywhere(op) || actionOf(op) == Action::Update)
    return success();
  for (Value result : op->getResults()) {
    if (!isReducedOverTime(getLayout(tensorType(result), mesh), mesh))
      continue;
    bool isForEach = false, isOnce = false;
    for (Operation *user : result.getUsers()) {
      if (isa<ReturnOp>(user) || isEverywhere(user))
        continue;
      if (actionOf(user) == Action::Update)
        isOnce = true;
      else
        isForEach |= actionOf(user) != actionOf(op) ||
                     stageOfOp.lookup(user) != stageOfOp.lookup(op);
    }
    if (isForEach && isOnce)
      return op->emitError()
             << "'" << getNodeName(op)
             << "' is a sum over micro-batches, and read for each of them: use "
                "--micro-batches=1";
  }
  return success();
}

/// Finds what no earlier stage waits for, where there is something that one
/// does, and makes it an action of its own. In reverse order, in which all
/// users come before what they use, one walk finds what is awaited: what an
/// earlier stage reads, and what that is made of. The first stage passes
/// nothing on, so its backward pass stays in one piece.
void Placement::findWeightGradients() {
  llvm::DenseSet<Operation *> awaited;
  llvm::DenseSet<int64_t> passOn;
  for (Operation &op : llvm::reverse(program.getBody().front()))
    if (actionOf(&op) == Action::Backward) {
      int64_t stage = stageOfOp.lookup(&op);
      bool isAwaited = llvm::any_of(op.getUsers(), [&](Operation *user) {
        return actionOf(user) == Action::Backward &&
               (stageOfOp.lookup(user) < stage || awaited.contains(user));
      });
      if (!isAwaited)
        continue;
      awaited.insert(&op);
      passOn.insert(stage);
    }
  for (auto &[op, action] : actions)
    if (action == Action::Backward && !awaited.contains(op) &&
        passOn.contains(stageOfOp.lookup(op)))
      action = Action::Weights;
}

std::optional<int64_t> Placement::stageOf(Operation *op) const {
  auto it = stageOfOp.find(op);
  if (it == stageOfOp.end())
    return std::nullopt;
  return it->second;
}
