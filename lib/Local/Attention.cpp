//===- Attention.cpp - Attention with its softmax's sums ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Dialect/AttentionValues.h"
#include "ax/Dialect/Tensors.h"
#include "ax/Local/Local.h"

using namespace mlir;
using namespace ax;

/// What attention and its gradient have alike.
template <typename Op>
static LogicalResult checkShapes(Op op) {
  ArrayRef<int64_t> q = shapeOf(op.getQ()), k = shapeOf(op.getK()),
                    v = shapeOf(op.getV());
  if (q.size() != 4 || k.size() != 4 || v.size() != 4 || q[0] != k[0] ||
      q[3] != k[3] || k[1] == 0 || q[1] % k[1] != 0 ||
      v.drop_back() != k.drop_back())
    return op.emitOpError("q, k, v do not fit: ")
           << op.getQ().getType() << ", " << op.getK().getType() << ", "
           << op.getV().getType();
  int64_t given[] = {q[0], q[1], q[2], v[3]};
  if (shapeOf(op.getResult()) != ArrayRef<int64_t>(given))
    return op.emitOpError("gives no ") << op.getResult().getType();
  if (Value mask = op.getMask();
      mask &&
      failed(checkAttentionMask(op.getLoc(), op.getQ(), op.getK(), mask)))
    return failure();
  Value sums = op.getLogSums();
  if (!elementType(sums).isF32() || shapeOf(sums) != q.drop_back())
    return op.emitOpError("has a sum in f32 for each query, not ")
           << sums.getType();
  return success();
}

LogicalResult LocalAttentionOp::verify() { return checkShapes(*this); }

LogicalResult LocalAttentionGradientOp::verify() {
  if (failed(checkShapes(*this)))
    return failure();
  if (getDq().getType() != getQ().getType() ||
      getDk().getType() != getK().getType() ||
      getDv().getType() != getV().getType())
    return emitOpError("gives gradients of the types of q, k and v");
  if (getGradient().getType() != getResult().getType())
    return emitOpError("needs a gradient of ") << getResult().getType();
  return success();
}
