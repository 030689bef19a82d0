//===- Gather.cpp - Gradients of gather and scatter -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Indices are taken to be in range.
//
//===----------------------------------------------------------------------===//

#include "../GradientRules.h"

using namespace mlir;
using namespace ax;

static LogicalResult gather(GatherOp op, GradientBuilder &g) {
  g.give(op.getOperandMutable(), [&]() -> Value {
    return GatherGradientOp::create(g.b, g.ofResult(), op.getIndices(),
                                    op.getAxis(),
                                    shapeOf(op.getOperand())[op.getAxis()]);
  });
  return success();
}

static LogicalResult gatherElements(GatherElementsOp op, GradientBuilder &g) {
  g.give(op.getOperandMutable(), [&]() -> Value {
    return ScatterElementsOp::create(
        g.b, ScatterKind::add, g.zerosLike(op.getOperand()), op.getIndices(),
        g.ofResult(), op.getAxis());
  });
  return success();
}

/// Scatter has no batch dimensions: their indices are written out.
static Value withBatchIndices(GradientBuilder &g, Value indices,
                              int64_t batchDims) {
  ArrayRef<int64_t> shape = shapeOf(indices);
  SmallVector<int64_t> column(shape);
  column.back() = 1;
  SmallVector<Value> columns;
  for (int64_t dim = 0; dim < batchDims; ++dim) {
    Value number = IotaOp::create(
        g.b, RankedTensorType::get(column, elementType(indices)), dim);
    columns.push_back(number);
  }
  columns.push_back(indices);
  if (columns.size() == 1)
    return indices;
  return ConcatOp::create(g.b, columns, shape.size() - 1);
}

static LogicalResult gatherND(GatherNDOp op, GradientBuilder &g) {
  g.give(op.getOperandMutable(), [&]() -> Value {
    return ScatterNDOp::create(
        g.b, ScatterKind::add, g.zerosLike(op.getOperand()),
        withBatchIndices(g, op.getIndices(), op.getBatchDims()), g.ofResult());
  });
  return success();
}

/// The inverse: slices added up, and chosen again.
static LogicalResult gatherGradient(GatherGradientOp op, GradientBuilder &g) {
  g.give(op.getUpdatesMutable(), [&]() -> Value {
    return GatherOp::create(g.b, g.ofResult(), op.getIndices(), op.getAxis());
  });
  return success();
}

static Value scatterLike(ScatterElementsOp op, GradientBuilder &g,
                         ScatterKind kind, Value into, Value updates) {
  return ScatterElementsOp::create(g.b, kind, into, op.getIndices(), updates,
                                   op.getAxis());
}
static Value scatterLike(ScatterNDOp op, GradientBuilder &g, ScatterKind kind,
                         Value into, Value updates) {
  return ScatterNDOp::create(g.b, kind, into, op.getIndices(), updates);
}
static Value gatherLike(ScatterElementsOp op, GradientBuilder &g, Value from) {
  return GatherElementsOp::create(g.b, from, op.getIndices(), op.getAxis());
}
static Value gatherLike(ScatterNDOp op, GradientBuilder &g, Value from) {
  return GatherNDOp::create(g.b, from, op.getIndices(), /*batch_dims=*/0);
}

/// Whoever is the largest (smallest) at its place; equal ones share evenly.
template <typename ScatterOp>
static void extreme(ScatterOp op, GradientBuilder &g) {
  Type element = elementType(op.getOperand());
  Value isOperand = g.inForward([&] {
    return g.compare(CompareKind::eq, op.getOperand(), op.getResult());
  });
  Value isUpdate = g.inForward([&] {
    Value best = gatherLike(op, g, op.getResult());
    return g.compare(CompareKind::eq, op.getUpdates(), best);
  });
  Value ofOperand = g.indicator(isOperand, element);
  Value ofUpdates = g.indicator(isUpdate, element);
  Value count = scatterLike(op, g, ScatterKind::add, ofOperand, ofUpdates);
  Value share = g.div(g.ofResult(), count);
  g.give(op.getOperandMutable(), [&] { return g.mul(share, ofOperand); });
  g.give(op.getUpdatesMutable(),
         [&] { return g.mul(gatherLike(op, g, share), ofUpdates); });
}

/// The product of all others: a quotient, but for zeros. One zero at a place
/// alone has a gradient, the product of those that are none.
template <typename ScatterOp>
static void product(ScatterOp op, GradientBuilder &g) {
  Value x = op.getOperand(), updates = op.getUpdates(), dy = g.ofResult();
  Value one = g.number(x, 1);
  g.give(op.getOperandMutable(), [&] {
    Value ones = g.splat(shapeOf(x), elementType(x), 1);
    return g.mul(dy, scatterLike(op, g, ScatterKind::mul, ones, updates));
  });
  g.give(op.getUpdatesMutable(), [&] {
    Value isZero = g.compare(CompareKind::eq, updates, 0);
    Value nonZero = g.select(isZero, one, updates);
    Value zeros = scatterLike(op, g, ScatterKind::add, g.zerosLike(x),
                              g.indicator(isZero, elementType(x)));
    Value rest = scatterLike(op, g, ScatterKind::mul, x, nonZero);
    // Zeros among the other updates of the place.
    Value others =
        g.sub(gatherLike(op, g, zeros), g.indicator(isZero, elementType(x)));
    Value slope = g.div(gatherLike(op, g, g.mul(dy, rest)), nonZero);
    return g.select(g.compare(CompareKind::eq, others, 0), slope, 0);
  });
}

/// Gives all updates of one place its gradient, though `set` keeps one of them:
/// as PyTorch does.
template <typename ScatterOp>
static LogicalResult scatter(ScatterOp op, GradientBuilder &g) {
  Value dy = g.ofResult();
  switch (op.getKind()) {
  case ScatterKind::set:
    g.give(op.getOperandMutable(), [&] {
      return scatterLike(op, g, ScatterKind::set, dy,
                         g.zerosLike(op.getUpdates()));
    });
    g.give(op.getUpdatesMutable(), [&] { return gatherLike(op, g, dy); });
    return success();
  case ScatterKind::add:
    g.give(op.getOperandMutable(), [&] { return dy; });
    g.give(op.getUpdatesMutable(), [&] { return gatherLike(op, g, dy); });
    return success();
  case ScatterKind::mul:
    product(op, g);
    return success();
  case ScatterKind::max:
  case ScatterKind::min:
    extreme(op, g);
    return success();
  }
  llvm_unreachable("scatter kind");
}

void ax::attachGatherGradients(MLIRContext &context) {
  attachGradient<GatherOp, gather>(context);
  attachGradient<GatherElementsOp, gatherElements>(context);
  attachGradient<GatherNDOp, gatherND>(context);
  attachGradient<GatherGradientOp, gatherGradient>(context);
  attachGradient<ScatterElementsOp, scatter<ScatterElementsOp>>(context);
  attachGradient<ScatterNDOp, scatter<ScatterNDOp>>(context);
}
