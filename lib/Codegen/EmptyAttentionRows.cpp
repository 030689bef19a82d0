//===- EmptyAttentionRows.cpp - Queries that see no key -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A query that attends to all T keys alike has p = 1/T, and gives the mean m of
// the values. Its scores do not matter, so that what it adds to gradients needs
// no matrix of queries and keys: ds = (g v^T - g m) / T is g (v - m)^T / T, and
//
//   dq = scale/T g ((v - m)^T k)   dk = scale/T (v - m) (g^T q)   dv = g / T
//
// summed over such queries, with products in parentheses of [depth, depth].
//
//===----------------------------------------------------------------------===//
#include "EmptyAttentionRows.h"

#include "ax/Gradients/AttentionParts.h"

#include <cmath>

using namespace mlir;
using namespace ax;

static int64_t keysOf(Value v) { return shapeOf(v)[2]; }

/// [batch, kv heads, 1, value depth], in f32.
static Value meanOf(Value v, TensorBuilder &t) {
  return t.mul(t.sum(t.wide(v), 2), 1.0 / static_cast<double>(keysOf(v)));
}

/// [batch, kv heads, 1, ...] for each of [batch, heads, 1, ...].
static Value toHeads(Value x, int64_t heads, TensorBuilder &t) {
  SmallVector<int64_t> shape(shapeOf(x)), grouped(shape);
  grouped[2] = heads / shape[1];
  shape[1] = heads;
  return t.reshape(t.broadcast(x, grouped), shape);
}

void ax::codegen::finishEmptyRows(AttentionOp op, Value isEmpty) {
  OpBuilder builder(op);
  builder.setInsertionPointAfter(op);
  TensorBuilder t(op.getLoc(), builder);
  Value result = op.getResult(), given;
  if (op.getEmptyRowsMean())
    given = t.cast(toHeads(meanOf(op.getV(), t), shapeOf(result)[1], t),
                   elementType(result));
  else
    given = t.number(result, op.getEmptyRowsZero() ? 0 : NAN);
  Value filled = t.select(isEmpty, given, result);
  result.replaceAllUsesExcept(filled, filled.getDefiningOp());
}

static void addBehind(Value gradient, Value more, TensorBuilder &t) {
  Value wide = t.wide(gradient);
  Value sum = t.cast(t.add(wide, more), elementType(gradient));
  SmallPtrSet<Operation *, 2> own{wide.getDefiningOp()};
  if (wide == gradient)
    own = {sum.getDefiningOp()};
  gradient.replaceAllUsesExcept(sum, own);
}

/// What queries with a gradient, the others having 0, add by means.
static void addMeans(AttentionGradientOp op, Value gradient) {
  OpBuilder builder(op);
  builder.setInsertionPointAfter(op);
  TensorBuilder t(op.getLoc(), builder);
  AttentionParts parts(AttentionValues(op), t, elementType(op.getQ()));
  Value q = op.getQ(), k = op.getK(), v = op.getV();
  double perKey = 1.0 / static_cast<double>(keysOf(v));
  double scale = parts.in.scale;
  Value g = parts.byGroups(gradient);
  Value centered = t.sub(t.wide(v), meanOf(v, t));

  // Sums over all of a sequence might be more than f16 has.
  Value ofKeys = t.mul(parts.dot(centered, k, 2, 2), perKey);
  Value dq = t.mul(parts.dot(g, ofKeys, 4, 2), scale);
  addBehind(op.getDq(), t.reshape(dq, shapeOf(q)), t);
  Value ofQueries =
      t.mul(parts.dot(g, parts.byGroups(q), {2, 3}, {2, 3}), perKey);
  addBehind(op.getDk(), t.mul(parts.dot(centered, ofQueries, 3, 2), scale), t);
  Value sum = t.sum(t.wide(gradient), 2);
  SmallVector<int64_t> shape(shapeOf(v));
  shape[2] = shapeOf(q)[1] / shape[1];
  sum = t.sum(t.reshape(sum, shape), 2);
  addBehind(op.getDv(), t.mul(sum, perKey), t);
}

void ax::codegen::finishEmptyRows(AttentionGradientOp op, Value isEmpty) {
  OpBuilder builder(op);
  TensorBuilder t(op.getLoc(), builder);
  Value gradient = op.getGradient(), zero = t.number(gradient, 0);
  bool isMean = op.getEmptyRowsMean();
  Value given =
      isMean || op.getEmptyRowsZero() ? zero : t.number(gradient, NAN);
  op.getGradientMutable().assign(t.select(isEmpty, given, gradient));
  if (isMean)
    addMeans(op, t.select(isEmpty, gradient, zero));
}
