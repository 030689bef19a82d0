//===- OpCost.cpp - What one operation costs one rank ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Cost/OpCost.h"

#include "ax/Dialect/LookUp.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace ax;

std::vector<int64_t> cost::localShape(RankedTensorType type,
                                      const sharding::Mesh &mesh) {
  return getLayout(type, mesh).localShape();
}

int64_t cost::elementBytes(Type element) {
  return element.isIntOrFloat()
             ? std::max<int64_t>(1, element.getIntOrFloatBitWidth() / 8)
             : 8;
}

sharding::ElementBytes cost::elementBytesOf(RankedTensorType type) {
  Type element = type.getElementType();
  int64_t bytes = elementBytes(element);
  return {bytes, isNarrowFloat(element) ? 4 : bytes};
}

int64_t cost::localBytes(RankedTensorType type, const sharding::Mesh &mesh) {
  RankedTensorType part = localPartType(type, mesh);
  int64_t bytes = elementBytes(part.getElementType());
  for (int64_t size : part.getShape())
    bytes *= size;
  return bytes;
}

static double flops(Operation *op,
                    llvm::function_ref<std::vector<int64_t>(Value)> shape) {
  auto contraction = dyn_cast<ContractionOpInterface>(op);
  return contraction ? contraction.getFlops(shape) : 0;
}

double cost::contractionFlops(Operation *op, const sharding::Mesh &mesh) {
  return flops(
      op, [&](Value value) { return localShape(tensorType(value), mesh); });
}

double cost::wholeFlops(Operation *op) {
  return flops(op,
               [](Value value) { return tensorType(value).getShape().vec(); });
}

/// Returns the time that the arithmetic of a contraction takes.
static double contractionSeconds(Operation *op, const sharding::Mesh &mesh,
                                 const cost::Machine &machine) {
  double flops = cost::contractionFlops(op, mesh);
  if (flops == 0)
    return 0;
  return flops / machine.flopsPerSecondOf(
                     tensorType(op->getOperand(0)).getElementType());
}

/// The look-ups of matrices that a value is made of, element by element: those
/// of the experts that tokens choose. Products read the matrices where they are
/// (`axl-group-products`). None of other values.
static llvm::SmallSetVector<Operation *, 4> lookUpsOf(Value value) {
  constexpr size_t mostValues = 64;
  llvm::SmallSetVector<Value, 16> values;
  llvm::SmallSetVector<Operation *, 4> found;
  values.insert(value);
  for (size_t i = 0; i < values.size() && i < mostValues; ++i) {
    Operation *op = values[i].getDefiningOp();
    if (looksUpMatrices(op))
      found.insert(op);
    else if (isElementwise(op) || isView(op) ||
             isa_and_nonnull<TransposeOp, SliceOp, BroadcastOp>(op))
      for (Value operand : op->getOperands())
        if (tensorType(operand).getRank() > 2)
          values.insert(operand);
  }
  return found;
}

/// Whether all that becomes of a value, moved or widened, is that it is added
/// up in the places that it was looked up from: gradients of these matrices.
static bool isAddedUp(Value value) {
  while (tensorType(value).getRank() > 2 && value.hasOneUse()) {
    Operation *user = *value.user_begin();
    if (auto sum = dyn_cast<GatherGradientOp>(user))
      return sum.getAxis() == 0;
    if (auto sum = dyn_cast<ScatterNDOp>(user))
      return sum.getKind() == ScatterKind::add && sum.getUpdates() == value;
    if (!isa<CastOp, TransposeOp, ReshapeOp>(user))
      return false;
    value = user->getResult(0);
  }
  return false;
}

/// Bytes that who takes the value reads.
static int64_t bytesRead(Value value, const sharding::Mesh &mesh) {
  auto bytesOf = [&](Value value) {
    return cost::localBytes(tensorType(value), mesh);
  };
  int64_t bytes = 0;
  auto lookUps = lookUpsOf(value);
  for (Operation *lookUp : lookUps)
    bytes +=
        std::min(bytesOf(lookUp->getOperand(0)), bytesOf(lookUp->getResult(0)));
  if (isAddedUp(value))
    return 0;
  return lookUps.empty() ? bytesOf(value) : std::min(bytes, bytesOf(value));
}

/// Returns the time of an operation that reads `moreBytes` than its operands
/// have.
static double secondsWith(double moreBytes, Operation *op,
                          const sharding::Mesh &mesh,
                          const cost::Machine &machine) {
  if (isSource(op) ||
      isa<CollectiveOpInterface, WaitOp, ReshapeOp, ReturnOp, StoreOp, YieldOp,
          StageOp, TransferOp, ScheduleOp>(op))
    return 0;
  auto isWritten = [](Value value) {
    return lookUpsOf(value).empty() && !isAddedUp(value);
  };
  if (op->getNumResults() == 1 && !isWritten(op->getResult(0)) &&
      contractionSeconds(op, mesh, machine) == 0)
    return 0;
  double bytes = moreBytes;
  for (Value value : op->getOperands())
    bytes += bytesRead(value, mesh);
  // Of a table, as of embeddings, it reads the rows that it gives.
  if (auto lookUp = dyn_cast<GatherOp>(op)) {
    int64_t table = bytesRead(lookUp->getOperand(0), mesh);
    int64_t rows = cost::localBytes(tensorType(lookUp->getResult(0)), mesh);
    bytes -= static_cast<double>(std::max<int64_t>(0, table - rows));
  }
  for (Value value : op->getResults())
    if (isWritten(value))
      bytes += cost::localBytes(tensorType(value), mesh);
  return std::max(contractionSeconds(op, mesh, machine),
                  bytes / machine.bytesPerSecond);
}

double cost::seconds(Operation *op, const sharding::Mesh &mesh,
                     const Machine &machine) {
  return secondsWith(0, op, mesh, machine);
}

double cost::secondsInPlace(Operation *op, const sharding::Mesh &mesh,
                            const Machine &machine) {
  if (findProduct(op, *machine.library))
    return 0;
  Epilogue epilogue = findEpilogue(op, *machine.library);
  double added = 0;
  for (Value value : {epilogue.getBias(), epilogue.getAddend()})
    if (value)
      added += localBytes(tensorType(value), mesh);
  return secondsWith(added, op, mesh, machine);
}
