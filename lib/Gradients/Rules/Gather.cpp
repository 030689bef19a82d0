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

/// Where each slice is that was gathered: its number among all slices of its
/// sample.
static Value sliceNumbers(GatherNDOp op, GradientBuilder &g) {
  Value indices = op.getIndices();
  ArrayRef<int64_t> slices = shapeOf(indices).drop_back();
  Value number = g.splat(slices, elementType(indices), 0);
  for (int64_t i = 0, depth = shapeOf(indices).back(); i < depth; ++i) {
    double size = shapeOf(op.getOperand())[op.getBatchDims() + i];
    Value index = g.reshape(g.slice(indices, slices.size(), i, 1), slices);
    Value fromEnd = g.compare(CompareKind::lt, index, 0);
    index = g.select(fromEnd, g.add(index, size), index);
    number = g.add(g.mul(number, size), index);
  }
  return number;
}

/// Each sample gets back what is its own, so that a batch that is split stays
/// so: as [batch, slices, elements of a slice].
static Value scatterInBatch(GatherNDOp op, GradientBuilder &g) {
  ArrayRef<int64_t> shape = shapeOf(op.getOperand()),
                    results = shapeOf(op.getResult());
  int64_t batchDims = op.getBatchDims();
  size_t depth = shapeOf(op.getIndices()).back(),
         numIndices = shapeOf(op.getIndices()).size() - 1;
  auto flat = [&](int64_t slices, int64_t elements) {
    SmallVector<int64_t> dims(shape.take_front(batchDims));
    dims.append({slices, elements});
    return dims;
  };
  int64_t elements = computeProduct(results.drop_front(numIndices)),
          gathered =
              computeProduct(results.slice(batchDims, numIndices - batchDims)),
          all = computeProduct(shape.slice(batchDims, depth));
  Value numbers = g.broadcast(g.reshape(sliceNumbers(op, g), flat(gathered, 1)),
                              flat(gathered, elements));
  Value sums = ScatterElementsOp::create(
      g.b, ScatterKind::add,
      g.splat(flat(all, elements), elementType(op.getOperand()), 0), numbers,
      g.reshape(g.ofResult(), flat(gathered, elements)), batchDims);
  return g.reshape(sums, shape);
}

static LogicalResult gatherND(GatherNDOp op, GradientBuilder &g) {
  g.give(op.getOperandMutable(), [&]() -> Value {
    if (op.getBatchDims() > 0)
      return scatterInBatch(op, g);
    return ScatterNDOp::create(g.b, ScatterKind::add,
                               g.zerosLike(op.getOperand()), op.getIndices(),
                               g.ofResult());
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
