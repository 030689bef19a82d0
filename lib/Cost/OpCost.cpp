//===- OpCost.cpp - What one operation costs one rank ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Cost/OpCost.h"

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

/// Returns the time of an operation that reads `moreBytes` than its operands
/// have.
static double secondsWith(double moreBytes, Operation *op,
                          const sharding::Mesh &mesh,
                          const cost::Machine &machine) {
  if (isSource(op) ||
      isa<CollectiveOpInterface, WaitOp, ReshapeOp, ReturnOp, StoreOp, YieldOp,
          StageOp, TransferOp, ScheduleOp>(op))
    return 0;
  double bytes = moreBytes;
  for (Value value : op->getOperands())
    bytes += cost::localBytes(tensorType(value), mesh);
  for (Value value : op->getResults())
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

sharding::CostFn cost::collectiveCost(const Machine &machine) {
  return sharding::ringCost(machine.collectiveLatency,
                            machine.collectiveBytesPerSecond);
}
