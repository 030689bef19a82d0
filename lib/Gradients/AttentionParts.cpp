//===- AttentionParts.cpp - Attention from other operations ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Gradients/AttentionParts.h"

#include <cmath>

using namespace mlir;
using namespace ax;

Value AttentionParts::byGroups(Value value) {
  SmallVector<int64_t> shape(shapeOf(value));
  shape[1] = kvHeads;
  shape.insert(shape.begin() + 2, heads / kvHeads);
  return t.reshape(value, shape);
}

SmallVector<int64_t> AttentionParts::maskShape() {
  SmallVector<int64_t> shape(shapeOf(op.getMask()));
  bool shared = shape[1] == 1 && heads != 1;
  shape[1] = shared ? 1 : kvHeads;
  shape.insert(shape.begin() + 2, shared ? 1 : heads / kvHeads);
  return shape;
}

Value AttentionParts::dot(Value x, Value y, ArrayRef<int64_t> xDims,
                          ArrayRef<int64_t> yDims) {
  constexpr int64_t both[] = {0, 1};
  return DotOp::create(t.b, x, y, both, both, xDims, yDims);
}

Value AttentionParts::probabilities(Value q) {
  Value scores = dot(q, op.getK(), 4, 3);
  if (auto cap = op.getSoftcap()) {
    double limit = cap->convertToDouble();
    capped = t.unary(UnaryKind::tanh, t.mul(scores, 1 / limit));
    scores = t.mul(capped, limit);
  }
  if (Value given = op.getMask()) {
    Value mask = t.reshape(given, maskShape());
    scores = elementType(given).isInteger(1)
                 ? t.select(mask, scores, -INFINITY)
                 : t.add(scores, t.cast(mask, elementType(scores)));
  }
  if (op.getCausal()) {
    Value last = t.indexAlong(3, queries, 5);
    last = t.add(last, static_cast<double>(keys - queries));
    Value attended = t.compare(CompareKind::le, t.indexAlong(4, keys, 5), last);
    scores = t.select(attended, scores, -INFINITY);
  }
  auto softmax = [&](Value v) -> Value {
    return SoftmaxOp::create(t.b, v, 4, /*log=*/false);
  };
  bool mayBeEmpty = op.getMask() || (op.getCausal() && keys < queries);
  if (!op.getEmptyRowsZero() || !mayBeEmpty)
    return softmax(scores);
  Value largest = t.reduce(ReduceOpKind::max, scores, 4);
  Value isEmpty = t.compare(CompareKind::eq, largest, -INFINITY);
  Value zero = t.number(scores, 0);
  return t.select(isEmpty, zero, softmax(t.select(isEmpty, zero, scores)));
}

Value AttentionParts::scaledQueries() {
  return t.mul(byGroups(op.getQ()),
               t.number(op.getQ(), op.getScale().convertToDouble()));
}
