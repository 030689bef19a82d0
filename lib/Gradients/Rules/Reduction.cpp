//===- Reduction.cpp - Gradients of reductions ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../GradientRules.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace ax;

/// Equal largest (smallest) elements share evenly.
static Value extreme(ReduceOp op, GradientBuilder &g) {
  Value x = op.getOperand();
  ArrayRef<int64_t> shape = shapeOf(x), dims = op.getDims();
  Value isEqual = g.inForward([&] {
    Value best = g.keepDims(op.getResult(), shape, dims);
    return g.compare(CompareKind::eq, x, best);
  });
  Value isBest = g.indicator(isEqual, elementType(x));
  Value share =
      g.div(g.keepDims(g.ofResult(), shape, dims), g.sum(isBest, dims));
  return g.mul(isBest, share);
}

/// Takes for each element the product of all others, which a quotient would not
/// give for zeros: of those before it times those behind it.
static Value product(ReduceOp op, GradientBuilder &g) {
  Value x = op.getOperand();
  ArrayRef<int64_t> shape = shapeOf(x), dims = op.getDims();
  int64_t rank = shape.size(), count = 1;
  SmallVector<int64_t> order, rows;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (!llvm::is_contained(dims, dim)) {
      order.push_back(dim);
      rows.push_back(shape[dim]);
    }
  for (int64_t dim : dims)
    count *= shape[dim];
  llvm::append_range(order, dims);
  rows.push_back(count);
  Value moved = g.transpose(x, order);
  SmallVector<int64_t> movedShape(shapeOf(moved));
  Value row = g.reshape(moved, rows);
  auto others = [&](bool reverse) -> Value {
    return CumulativeOp::create(g.b, ReduceOpKind::prod, row, rows.size() - 1,
                                /*exclusive=*/true, reverse);
  };
  Value slope = g.reshape(g.mul(others(false), others(true)), movedShape);
  slope = g.transpose(slope, invertPermutationVector(order));
  return g.mul(slope, g.keepDims(g.ofResult(), shape, dims));
}

static LogicalResult reduce(ReduceOp op, GradientBuilder &g) {
  ArrayRef<int64_t> shape = shapeOf(op.getOperand());
  g.give(op.getOperandMutable(), [&]() -> Value {
    if (op.getDims().empty())
      return g.ofResult();
    switch (op.getKind()) {
    case ReduceOpKind::sum:
      return g.broadcast(g.keepDims(g.ofResult(), shape, op.getDims()), shape);
    case ReduceOpKind::max:
    case ReduceOpKind::min:
      return extreme(op, g);
    case ReduceOpKind::prod:
      return product(op, g);
    }
    llvm_unreachable("reduce kind");
  });
  return success();
}

/// Each result comes from one element, and gives its gradient back to it.
static LogicalResult topK(TopKOp op, GradientBuilder &g) {
  if (!g.ofResult(0))
    return success();
  g.give(op.getOperandMutable(), [&]() -> Value {
    return ScatterElementsOp::create(
        g.b, ScatterKind::add, g.zerosLike(op.getOperand()), op.getIndices(),
        g.ofResult(0), op.getDim());
  });
  return success();
}

void ax::attachReductionGradients(MLIRContext &context) {
  attachGradient<ReduceOp, reduce>(context);
  attachGradient<TopKOp, topK>(context);
}
