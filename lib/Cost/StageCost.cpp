//===- StageCost.cpp - Memory and time of a pipeline stage ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Cost/StageCost.h"

#include "ax/Cost/Arena.h"
#include "ax/Dialect/Actions.h"

using namespace mlir;
using namespace ax;

int64_t cost::payloadBytes(CollectiveOpInterface op,
                           const sharding::Mesh &mesh) {
  int64_t bytes = 0;
  for (auto [operand, result] :
       llvm::zip_equal(op->getOperands(), op->getResults())) {
    RankedTensorType from = tensorType(operand), to = tensorType(result);
    bytes += sharding::payloadBytes(
        op.getStepKind(), getLayout(from, mesh), getLayout(to, mesh),
        elementBytes(localPartType(from, mesh).getElementType()));
  }
  return bytes;
}

double cost::collectiveSeconds(CollectiveOpInterface op,
                               const sharding::Mesh &mesh,
                               const Machine &machine) {
  if (!isSent(op, mesh))
    return 0;
  return collectiveCost(mesh, machine)(op.getStepKind(),
                                       op.getMovedAxes().resolve(mesh),
                                       payloadBytes(op, mesh));
}

/// The product whose result is made where that of `op` is.
static Operation *productOf(Operation *op) {
  return findProduct(op, cost::libraryOf(op));
}

/// The value in whose memory `value` lies: these only rename, and a product is
/// written once it is through its epilogue.
static Value storageOf(Value value) {
  while (Operation *op = value.getDefiningOp())
    if (isa<ReshapeOp, WaitOp>(op))
      value = op->getOperand(0);
    else if (Operation *product = productOf(op))
      value = product->getResult(0);
    else
      break;
  return value;
}

/// Memory for what a stage makes on the way. What it loads, takes in or gives
/// to the program's outputs has its place elsewhere.
static int64_t arenaBytes(Block &body, const sharding::Mesh &mesh) {
  llvm::DenseMap<Operation *, int64_t> step;
  for (auto [i, op] : llvm::enumerate(body))
    step[&op] = i;
  llvm::DenseMap<Value, size_t> pieceOf;
  std::vector<cost::Lifetime> pieces;
  for (Operation &op : body) {
    if (isSource(&op) || isa<ReshapeOp, WaitOp>(op) || productOf(&op))
      continue;
    for (Value result : op.getResults()) {
      pieceOf[result] = pieces.size();
      pieces.push_back(
          {cost::localBytes(tensorType(result), mesh), step[&op], step[&op]});
    }
  }
  auto use = [&](Value value, Operation *op) {
    if (auto it = pieceOf.find(storageOf(value)); it != pieceOf.end())
      pieces[it->second].last = std::max(pieces[it->second].last, step[op]);
  };
  for (Operation &op : body) {
    for (Value operand : op.getOperands())
      use(operand, &op);
    if (auto wait = dyn_cast<WaitOp>(op))
      use(wait.getStarted().getDefiningOp()->getOperand(0), wait);
  }
  return cost::planArena(pieces);
}

/// What is there all the time, and not among `held` yet.
static int64_t stateBytes(Block &body, const sharding::Mesh &mesh,
                          llvm::DenseSet<Attribute> &held) {
  int64_t bytes = 0;
  for (Operation &op : body)
    if (auto load = dyn_cast<LoadOp>(op)) {
      if (held.insert(load.getStateAttr()).second)
        bytes += cost::localBytes(tensorType(load.getResult()), mesh);
    } else if (auto constant = dyn_cast<ConstantOp>(op)) {
      bytes += cost::localBytes(tensorType(constant.getResult()), mesh);
    }
  return bytes;
}

int64_t cost::programBytes(ProgramOp program, const sharding::Mesh &mesh) {
  Block &body = program.getBody().front();
  llvm::DenseSet<Attribute> held;
  return stateBytes(body, mesh, held) + arenaBytes(body, mesh);
}

/// A rank's part of a program's input or output, of all micro-batches.
static int64_t portBytes(Value value, const sharding::Mesh &mesh) {
  int64_t slices = 1;
  for (const sharding::SubAxis &axis :
       getLayout(tensorType(value), mesh).usedAxes())
    if (mesh.isInTime(axis))
      slices *= axis.size;
  return cost::localBytes(tensorType(value), mesh) * slices;
}

/// Memory of its own for what the list gives, or has in slots.
static int64_t slotBytes(StageOp list, const sharding::Mesh &mesh) {
  int64_t bytes = 0;
  for (Value operand : list.getOperands())
    if (auto transfer = operand.getDefiningOp<TransferOp>())
      bytes +=
          cost::localBytes(tensorType(operand), mesh) * transfer.getSlots();
  for (OpResult result : list.getResults())
    if (llvm::any_of(result.getUsers(), llvm::IsaPred<StageOp>) &&
        !keptInPlaceOf(result, mesh))
      bytes +=
          cost::localBytes(tensorType(result), mesh) * keptSlots(result, mesh);
  return bytes;
}

/// Returns the time that a list takes once. Collectives take their turns; where
/// they go on while the rank computes, what is started costs only what its wait
/// has to wait.
static double secondsOf(StageOp list, const sharding::Mesh &mesh,
                        const cost::Machine &machine) {
  double now = 0, free = 0;
  llvm::DenseMap<Value, double> ends;
  for (Operation &op : list.getBody().front()) {
    now += cost::secondsInPlace(&op, mesh, machine);
    if (auto wait = dyn_cast<WaitOp>(op))
      now = std::max(now, ends.lookup(wait.getStarted()));
    auto collective = dyn_cast<CollectiveOpInterface>(op);
    if (!collective || !cost::isSent(collective, mesh))
      continue;
    free = std::max(now, free) +
           cost::collectiveSeconds(collective, mesh, machine);
    if (machine.overlapsCollectives && op.hasAttr("start"))
      ends[op.getResult(0)] = free;
    else
      now = free;
  }
  return now;
}

bool cost::isSent(CollectiveOpInterface op, const sharding::Mesh &mesh) {
  sharding::SubAxes axes = op.getMovedAxes().resolve(mesh);
  return sharding::communicates(op.getStepKind()) &&
         inTime(axes, mesh).size() < axes.size();
}

cost::StageCost cost::stageCost(ArrayRef<StageOp> lists,
                                const sharding::Mesh &mesh,
                                const Machine &machine) {
  StageCost cost;
  llvm::DenseSet<Attribute> held;
  llvm::DenseSet<Value> ports;
  for (StageOp list : lists) {
    cost.seconds.push_back(secondsOf(list, mesh, machine));
    Block &body = list.getBody().front();
    cost.arenaBytes = std::max(cost.arenaBytes, arenaBytes(body, mesh));
    cost.stateBytes += stateBytes(body, mesh, held);
    cost.slotBytes += slotBytes(list, mesh);
    for (Value operand : list.getOperands())
      if (!operand.getDefiningOp() && ports.insert(operand).second)
        cost.portBytes += portBytes(operand, mesh);
    for (OpResult result : list.getResults())
      if (llvm::any_of(result.getUsers(), llvm::IsaPred<ReturnOp>))
        cost.portBytes += portBytes(result, mesh);
  }
  return cost;
}
