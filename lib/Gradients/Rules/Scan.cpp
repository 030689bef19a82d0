//===- Scan.cpp - Gradients of running reductions -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../GradientRules.h"

using namespace mlir;
using namespace ax;

static Value cumulate(GradientBuilder &g, ReduceOpKind kind, Value x,
                      int64_t dim, bool exclusive, bool reverse) {
  return CumulativeOp::create(g.b, kind, x, dim, exclusive, reverse);
}

/// Product by product: the one up to j, of all factors but i, for every pair of
/// i and j. Dear, but right where factors are 0.
static Value product(CumulativeOp op, GradientBuilder &g) {
  Value x = op.getOperand();
  int64_t dim = op.getDim(), size = shapeOf(x)[dim];
  int64_t rank = shapeOf(x).size() + 1;
  // Dimension dim is i, the one behind it is j.
  auto withRow = [&](Value v) {
    SmallVector<int64_t> shape(shapeOf(v));
    shape.insert(shape.begin() + dim, 1);
    return g.reshape(v, shape);
  };
  Value i = g.indexAlong(dim, size, rank),
        j = g.indexAlong(dim + 1, size, rank);
  Value one = g.number(x, 1);
  Value others = g.select(g.compare(CompareKind::eq, i, j), one, withRow(x));
  Value products = cumulate(g, ReduceOpKind::prod, others, dim + 1,
                            op.getExclusive(), op.getReverse());
  CompareKind reaches =
      op.getReverse() ? (op.getExclusive() ? CompareKind::lt : CompareKind::le)
                      : (op.getExclusive() ? CompareKind::gt : CompareKind::ge);
  Value terms = g.mul(products, withRow(g.ofResult()));
  terms = g.select(g.compare(reaches, j, i), terms, 0);
  return g.sum(terms, dim + 1, /*keepDims=*/false);
}

/// Each result is the last element so far that set a new record. The first
/// exclusive one is none.
static Value extreme(CumulativeOp op, GradientBuilder &g) {
  Value x = op.getOperand(), dy = g.ofResult();
  bool reverse = op.getReverse(), exclusive = op.getExclusive();
  int64_t dim = op.getDim(), rank = shapeOf(x).size(), size = shapeOf(x)[dim];
  Value isRecord = g.inForward([&] {
    Value best = op.getResult();
    if (exclusive)
      best = cumulate(g, op.getKind(), x, dim, false, reverse);
    return g.compare(CompareKind::eq, x, best);
  });
  Value index = g.indexAlong(dim, size, rank);
  double first = reverse ? static_cast<double>(size - 1) : 0;
  Value holder =
      cumulate(g, reverse ? ReduceOpKind::min : ReduceOpKind::max,
               g.select(isRecord, index, first), dim, exclusive, reverse);
  if (exclusive) {
    Value isFirst = g.compare(CompareKind::eq, index, first);
    dy = g.select(isFirst, g.number(dy, 0), dy);
    holder = g.select(isFirst, index, holder);
  }
  return ScatterElementsOp::create(g.b, ScatterKind::add, g.zerosLike(x),
                                   holder, dy, dim);
}

static LogicalResult cumulative(CumulativeOp op, GradientBuilder &g) {
  g.give(op.getOperandMutable(), [&]() -> Value {
    switch (op.getKind()) {
    case ReduceOpKind::sum:
      return cumulate(g, ReduceOpKind::sum, g.ofResult(), op.getDim(),
                      op.getExclusive(), !op.getReverse());
    case ReduceOpKind::prod:
      return product(op, g);
    case ReduceOpKind::max:
    case ReduceOpKind::min:
      return extreme(op, g);
    }
    llvm_unreachable("reduce kind");
  });
  return success();
}

void ax::attachScanGradients(MLIRContext &context) {
  attachGradient<CumulativeOp, cumulative>(context);
}
