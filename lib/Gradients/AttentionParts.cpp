//===- AttentionParts.cpp - Attention from other operations ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Gradients/AttentionParts.h"

#include <cmath>

using namespace mlir;
using namespace ax;

Value ax::seenByPlaces(const AttentionValues &values, TensorBuilder &t,
                       int64_t rank) {
  int64_t queries = shapeOf(values.q)[2], keys = shapeOf(values.k)[2];
  Value last = t.add(t.indexAlong(rank - 2, queries, rank),
                     static_cast<double>(keys - queries));
  Value key = t.indexAlong(rank - 1, keys, rank);
  Value seen = t.compare(CompareKind::le, key, last);
  if (!values.window)
    return seen;
  Value before = t.add(last, -static_cast<double>(*values.window));
  return t.binary(BinaryKind::logical_and, seen,
                  t.compare(CompareKind::gt, key, before));
}

Value AttentionParts::byGroups(Value value) {
  SmallVector<int64_t> shape(shapeOf(value));
  shape[1] = kvHeads;
  shape.insert(shape.begin() + 2, heads / kvHeads);
  return t.reshape(value, shape);
}

SmallVector<int64_t> AttentionParts::maskShape() {
  SmallVector<int64_t> shape(shapeOf(in.mask));
  bool shared = shape[1] == 1 && heads != 1;
  shape[1] = shared ? 1 : kvHeads;
  shape.insert(shape.begin() + 2, shared ? 1 : heads / kvHeads);
  return shape;
}

Value AttentionParts::dot(Value x, Value y, ArrayRef<int64_t> xDims,
                          ArrayRef<int64_t> yDims) {
  constexpr int64_t both[] = {0, 1};
  if (!productType)
    return DotOp::create(t.b, x, y, both, both, xDims, yDims);
  Value sum = DotOp::create(t.b, t.cast(x, productType), t.cast(y, productType),
                            both, both, xDims, yDims);
  // As it is made, before it would be rounded.
  sum.setType(tensorType(sum).clone(t.b.getF32Type()));
  return sum;
}

Value AttentionParts::probabilities(Value q) {
  Value scores = dot(q, in.k, 4, 3);
  if (in.softcap) {
    capped = t.unary(UnaryKind::tanh, t.mul(scores, 1 / *in.softcap));
    scores = t.mul(capped, *in.softcap);
  }
  if (Value given = in.mask) {
    Value mask = t.reshape(given, maskShape());
    scores = elementType(given).isInteger(1)
                 ? t.select(mask, scores, -INFINITY)
                 : t.add(scores, t.cast(mask, elementType(scores)));
  }
  if (in.causal)
    scores = t.select(seenByPlaces(in, t, 5), scores, -INFINITY);
  auto softmax = [&](Value v) -> Value {
    return SoftmaxOp::create(t.b, v, 4, /*log=*/false);
  };
  bool mayBeEmpty = in.mask || (in.causal && keys < queries);
  if (!(in.emptyRowsZero || in.emptyRowsMean) || !mayBeEmpty)
    return softmax(scores);
  Value largest = t.reduce(ReduceOpKind::max, scores, 4);
  Value isEmpty = t.compare(CompareKind::eq, largest, -INFINITY);
  Value zero = t.number(scores, 0);
  Value p = softmax(t.select(isEmpty, zero, scores));
  return in.emptyRowsMean ? p : t.select(isEmpty, zero, p);
}

Value AttentionParts::scaledQueries() {
  Value q = byGroups(in.q);
  return t.mul(productType ? t.wide(q) : q, in.scale);
}

AttentionGradientParts::AttentionGradientParts(const AttentionValues &values,
                                               Value result, Value gradient,
                                               TensorBuilder &t,
                                               Type productType)
    : parts(values, t, productType), t(t), dy(parts.byGroups(gradient)),
      q(parts.scaledQueries()), p(parts.probabilities(q)) {
  Value product = productType
                      ? t.mul(t.wide(dy), t.wide(parts.byGroups(result)))
                      : t.mul(dy, parts.byGroups(result));
  Value total = t.sum(product, 4);
  ds = t.mul(p, t.sub(parts.dot(dy, values.v, 4, 3), total));
}

Value AttentionGradientParts::ofProducts() {
  if (products)
    return products;
  products = ds;
  if (Value capped = parts.capped)
    products = t.mul(ds, t.add(t.neg(t.mul(capped, capped)), 1));
  return products;
}

Value AttentionGradientParts::ofV() {
  return t.cast(parts.dot(p, dy, {2, 3}, {2, 3}), elementType(parts.in.v));
}

Value AttentionGradientParts::ofMask() {
  Value mask = parts.in.mask;
  return t.cast(t.reshape(t.sumTo(ds, parts.maskShape()), shapeOf(mask)),
                elementType(mask));
}

Value AttentionGradientParts::ofQ() {
  Value sum = parts.dot(ofProducts(), parts.in.k, 4, 2), q = parts.in.q;
  return t.cast(t.reshape(t.mul(sum, parts.in.scale), shapeOf(q)),
                elementType(q));
}

Value AttentionGradientParts::ofK() {
  return t.cast(parts.dot(ofProducts(), q, {2, 3}, {2, 3}),
                elementType(parts.in.k));
}
