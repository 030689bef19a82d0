//===- OpCost.cpp - What one operation costs one rank ---------------------===//
#include "ax/Cost/OpCost.h"
#include "llvm/ADT/TypeSwitch.h"

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

static double product(ArrayRef<int64_t> sizes) {
  double result = 1;
  for (int64_t size : sizes)
    result *= size;
  return result;
}

static double localElements(Value value, const sharding::Mesh &mesh) {
  return product(cost::localShape(tensorType(value), mesh));
}

int64_t cost::localBytes(RankedTensorType type, const sharding::Mesh &mesh) {
  int64_t bytes = elementBytes(type.getElementType());
  for (int64_t size : localShape(type, mesh))
    bytes *= size;
  return bytes;
}

double cost::contractionFlops(Operation *op, const sharding::Mesh &mesh) {
  return llvm::TypeSwitch<Operation *, double>(op)
      .Case<LinearOp>([&](LinearOp linear) {
        return 2 * localElements(linear.getResult(), mesh) *
               localShape(tensorType(linear.getX()), mesh).back();
      })
      .Case<DotOp>([&](DotOp dot) {
        std::vector<int64_t> lhs = localShape(tensorType(dot.getLhs()), mesh);
        double k = 1;
        for (int64_t dim : dot.getLhsContract())
          k *= lhs[dim];
        return 2 * localElements(dot.getResult(), mesh) * k;
      })
      .Case<ConvOp>([&](ConvOp conv) {
        std::vector<int64_t> w = localShape(tensorType(conv.getW()), mesh);
        return 2 * localElements(conv.getResult(), mesh) *
               product(ArrayRef<int64_t>(w).drop_front());
      })
      .Case<ConvTransposeOp>([&](ConvTransposeOp conv) {
        std::vector<int64_t> w = localShape(tensorType(conv.getW()), mesh);
        return 2 * localElements(conv.getX(), mesh) *
               product(ArrayRef<int64_t>(w).drop_front());
      })
      .Case<AttentionOp>([&](AttentionOp attention) {
        std::vector<int64_t> q = localShape(tensorType(attention.getQ()), mesh),
                             v = localShape(tensorType(attention.getV()), mesh);
        double pairs = double(q[0]) * q[1] * q[2] * v[2];
        return 2 * pairs * (q[3] + v[3]) * (attention.getCausal() ? 0.5 : 1);
      })
      .Default([](Operation *) { return 0.0; });
}

double cost::seconds(Operation *op, const sharding::Mesh &mesh,
                     const Machine &machine) {
  if (isa<CollectiveOpInterface, ConstantOp, LoadOp, ReshapeOp, ReturnOp,
          YieldOp, StageOp, TransferOp, ScheduleOp>(op))
    return 0;
  double bytes = 0;
  for (Value value : op->getOperands())
    bytes += localBytes(tensorType(value), mesh);
  for (Value value : op->getResults())
    bytes += localBytes(tensorType(value), mesh);
  return std::max(contractionFlops(op, mesh) / machine.flopsPerSecond,
                  bytes / machine.bytesPerSecond);
}

sharding::CostFn cost::collectiveCost(const Machine &machine) {
  return sharding::ringCost(machine.collectiveLatency,
                            machine.collectiveBytesPerSecond);
}
