//===- Shape.cpp - Gradients of what moves elements -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../GradientRules.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace ax;

static LogicalResult reshape(ReshapeOp op, GradientBuilder &g) {
  g.give(op.getOperandMutable(),
         [&] { return g.reshape(g.ofResult(), shapeOf(op.getOperand())); });
  return success();
}

static LogicalResult transpose(TransposeOp op, GradientBuilder &g) {
  g.give(op.getOperandMutable(), [&] {
    return g.transpose(g.ofResult(),
                       invertPermutationVector(op.getPermutation()));
  });
  return success();
}

static LogicalResult broadcast(BroadcastOp op, GradientBuilder &g) {
  g.giveSummed(op.getOperandMutable(), [&] { return g.ofResult(); });
  return success();
}

static LogicalResult concat(ConcatOp op, GradientBuilder &g) {
  int64_t start = 0, dim = op.getDim();
  for (OpOperand &operand : op.getOperandsMutable()) {
    int64_t size = shapeOf(operand.get())[dim];
    g.give(operand, [&] { return g.slice(g.ofResult(), dim, start, size); });
    start += size;
  }
  return success();
}

/// Puts the elements of `dy` along `dim` at start, start + step, ... of `size`,
/// zeros between them.
static Value unslice(GradientBuilder &g, Value dy, int64_t dim, int64_t size,
                     int64_t start, int64_t step) {
  SmallVector<int64_t> shape(shapeOf(dy)), zeros(shape.size(), 0);
  int64_t count = shape[dim];
  if (count == 0) {
    shape[dim] = size;
    return g.splat(shape, elementType(dy), 0);
  }
  if (count == 1)
    step = 1;
  if (step < 0) {
    SmallVector<int64_t> starts(zeros), steps(shape.size(), 1);
    starts[dim] = count - 1;
    steps[dim] = -1;
    dy = SliceOp::create(g.b, dy.getType(), dy, starts, steps);
    start += (count - 1) * step;
    step = -step;
  }
  if (step > 1) {
    // Each element has a row of its own among zeros, which ranks split as they
    // split elements. There is a part of a last row where step divides no size.
    int64_t rows = llvm::divideCeilSigned(size, step), first = start / step;
    int64_t place = start % step;
    SmallVector<int64_t> low(shape.size() + 1, 0), high(low), apart(shape);
    apart.insert(apart.begin() + dim + 1, 1);
    low[dim] = first;
    high[dim] = rows - first - count;
    low[dim + 1] = place;
    high[dim + 1] = step - 1 - place;
    shape[dim] = rows * step;
    return g.slice(g.reshape(g.pad(g.reshape(dy, apart), low, high), shape),
                   dim, 0, size);
  }
  SmallVector<int64_t> low(zeros), high(zeros);
  low[dim] = start;
  high[dim] = size - start - shapeOf(dy)[dim];
  return g.pad(dy, low, high);
}

static LogicalResult slice(SliceOp op, GradientBuilder &g) {
  g.give(op.getOperandMutable(), [&] {
    Value dx = g.ofResult();
    for (auto [dim, size] : llvm::enumerate(shapeOf(op.getOperand())))
      dx = unslice(g, dx, dim, size, op.getStarts()[dim], op.getSteps()[dim]);
    return dx;
  });
  return success();
}

/// What is outside of the window gets nothing: it is outside of the gradient.
static LogicalResult dynamicSlice(DynamicSliceOp op, GradientBuilder &g) {
  g.give(op.getOperandMutable(), [&]() -> Value {
    SmallVector<Value> starts = llvm::map_to_vector(
        op.getStarts(), [&](Value start) { return g.neg(start); });
    return DynamicSliceOp::create(g.b, op.getOperand().getType(), g.ofResult(),
                                  starts);
  });
  return success();
}

/// The elements that are no padding.
static Value inner(PadOp op, GradientBuilder &g) {
  Value dx = g.ofResult();
  for (auto [dim, size] : llvm::enumerate(shapeOf(op.getOperand())))
    dx = g.slice(dx, dim, op.getLow()[dim], size);
  return dx;
}

/// Folds one dimension after the other: adds up at the places that padding
/// repeats, those where it puts their index.
static Value foldPadding(PadOp op, GradientBuilder &g) {
  Value dx = g.ofResult();
  for (auto [dim, size] : llvm::enumerate(shapeOf(op.getOperand()))) {
    int64_t low = op.getLow()[dim], high = op.getHigh()[dim];
    if (low == 0 && high == 0)
      continue;
    Value places = PadOp::create(g.b, g.indexAlong(0, size, 1), Value(), low,
                                 high, op.getMode());
    dx = GatherGradientOp::create(g.b, dx, places, dim, size);
  }
  return dx;
}

static LogicalResult pad(PadOp op, GradientBuilder &g) {
  bool isConstant = op.getMode() == PadMode::constant;
  g.give(op.getOperandMutable(),
         [&] { return isConstant ? inner(op, g) : foldPadding(op, g); });
  g.give(op.getValueMutable(), [&] {
    return g.sub(g.sumTo(g.ofResult(), {}), g.sumTo(inner(op, g), {}));
  });
  return success();
}

void ax::attachShapeGradients(MLIRContext &context) {
  attachGradient<ReshapeOp, ::reshape>(context);
  attachGradient<TransposeOp, ::transpose>(context);
  attachGradient<BroadcastOp, broadcast>(context);
  attachGradient<ConcatOp, ::concat>(context);
  attachGradient<SliceOp, slice>(context);
  attachGradient<DynamicSliceOp, dynamicSlice>(context);
  attachGradient<PadOp, pad>(context);
}
