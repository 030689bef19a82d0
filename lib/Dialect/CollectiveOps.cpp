//===- CollectiveOps.cpp - Verifying changes of layout --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KnownLayouts.h"

using namespace mlir;
using namespace ax;

static LogicalResult verifyStart(CollectiveOpInterface op) {
  if (!sharding::communicates(op.getStepKind()))
    return op->emitOpError("exchanges nothing: there is nothing to start");
  if (op->getNumResults() != 1 || !op->hasOneUse() ||
      !isa<WaitOp>(*op->user_begin()) ||
      op->user_begin()->getBlock() != op->getBlock())
    return op->emitOpError("is started: its result has one use, an ax.wait of "
                           "the same stage");
  return success();
}

LogicalResult WaitOp::verify() {
  auto started = getStarted().getDefiningOp<CollectiveOpInterface>();
  if (!started || !started->hasAttr("start"))
    return emitOpError(
        "waits for a value that no collective with `start` gives");
  return success();
}

static LogicalResult verifyStep(CollectiveOpInterface op, Value operand,
                                Value result) {
  Operation *raw = op;
  RankedTensorType from = tensorType(operand), to = tensorType(result);
  if (!sameWithoutLayout(TypeRange(from), TypeRange(to)))
    return raw->emitOpError("changes more than the layout: ")
           << from << " to " << to;
  sharding::Mesh mesh = getMesh(raw);
  LayoutsOnMesh &known = KnownLayouts::get(raw->getContext()).on(mesh);
  LayoutsOnMesh::Step step(static_cast<unsigned>(op.getStepKind()),
                           op.getMovedAxes(), from, to);
  if (known.soundSteps.contains(step))
    return success();
  sharding::SubAxes axes = op.getMovedAxes().resolve(mesh);
  for (const sharding::SubAxis &sub : axes) {
    int64_t size = mesh.axisSize(sub.axis);
    if (!mesh.find(sub.axis) || size % (sub.pre * sub.size))
      return raw->emitOpError("names an axis that the mesh lacks: ")
             << sharding::toString(sub, mesh);
  }
  if (auto fault =
          sharding::findStepFault(op.getStepKind(), axes, getLayout(from, mesh),
                                  getLayout(to, mesh), mesh))
    return raw->emitOpError() << *fault;
  known.soundSteps.insert(step);
  return success();
}

/// What is exchanged together is of one kind, also as ranks hold it: addends of
/// narrow floats are f32 there.
static LogicalResult verifyShared(Operation *op) {
  sharding::Mesh mesh = getMesh(op);
  auto kindOf = [&](Value value) {
    RankedTensorType type = tensorType(value);
    const sharding::Layout &layout = getLayout(type, mesh);
    return std::tuple(type.getElementType(),
                      localPartType(type, mesh).getElementType(),
                      layout.partial.empty() ? sharding::ReduceKind::Sum
                                             : layout.partialKind);
  };
  for (Value operand : op->getOperands())
    if (kindOf(operand) != kindOf(op->getOperand(0)))
      return op->emitOpError("exchanges ")
             << operand.getType() << " together with "
             << op->getOperand(0).getType()
             << ": they need one element type, which of addends of narrow "
                "floats is f32, and one kind of sum";
  return success();
}

static LogicalResult verifySteps(CollectiveOpInterface op) {
  Operation *raw = op;
  if (raw->getNumOperands() == 0 ||
      raw->getNumOperands() != raw->getNumResults())
    return raw->emitOpError("has ")
           << raw->getNumOperands() << " operands and " << raw->getNumResults()
           << " results: each result is an operand in another layout";
  for (auto [operand, result] :
       llvm::zip_equal(raw->getOperands(), raw->getResults()))
    if (failed(verifyStep(op, operand, result)))
      return failure();
  if (raw->hasAttr("start") && failed(verifyStart(op)))
    return failure();
  return verifyShared(raw);
}

#define AX_COLLECTIVE(OP, KIND)                                                \
  sharding::StepKind OP::getStepKind() { return sharding::StepKind::KIND; }    \
  LogicalResult OP::verify() { return verifySteps(*this); }

AX_COLLECTIVE(AllReduceOp, AllReduce)
AX_COLLECTIVE(ReduceScatterOp, ReduceScatter)
AX_COLLECTIVE(AllGatherOp, AllGather)
AX_COLLECTIVE(AllSliceOp, AllSlice)
AX_COLLECTIVE(AllToAllOp, AllToAll)
AX_COLLECTIVE(CollectivePermuteOp, CollectivePermute)
AX_COLLECTIVE(ToPartialOp, ToPartial)
