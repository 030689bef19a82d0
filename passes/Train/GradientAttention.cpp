//===- GradientAttention.cpp - The gradient of attention ------------------===//
//
// The scores are computed again, not kept. Query heads are taken apart into
// [kv heads, group], so that keys and values are shared by broadcasting.
//
//===----------------------------------------------------------------------===//

#include "GradientBuilder.h"

#include <cmath>

using namespace mlir;
using namespace ax;

namespace {
class AttentionGradient {
public:
  AttentionGradient(AttentionOp op, GradientBuilder &g)
      : op(op), g(g), heads(shapeOf(op.getQ())[1]),
        queries(shapeOf(op.getQ())[2]), kvHeads(shapeOf(op.getK())[1]),
        keys(shapeOf(op.getK())[2]) {}

  void build() {
    Value dy = byGroups(g.ofResult());
    Value scale = g.number(op.getQ(), op.getScale().convertToDouble());
    Value q = g.mul(byGroups(op.getQ()), scale);
    Value p = probabilities(q);
    g.give(op.getVMutable(), [&] { return dot(p, dy, {2, 3}, {2, 3}); });

    Value total = g.sum(g.mul(dy, byGroups(op.getResult())), 4);
    Value ds = g.mul(p, g.sub(dot(dy, op.getV(), 4, 3), total));
    g.give(op.getMaskMutable(), [&] {
      return g.reshape(g.sumTo(ds, maskShape()), shapeOf(op.getMask()));
    });
    if (capped)
      ds = g.mul(ds, g.add(g.neg(g.mul(capped, capped)), 1));
    g.give(op.getQMutable(), [&] {
      return g.reshape(g.mul(dot(ds, op.getK(), 4, 2), scale),
                       shapeOf(op.getQ()));
    });
    g.give(op.getKMutable(), [&] { return dot(ds, q, {2, 3}, {2, 3}); });
  }

private:
  /// [batch, heads, ...] as [batch, kv heads, group, ...].
  Value byGroups(Value value) {
    SmallVector<int64_t> shape(shapeOf(value));
    shape[1] = kvHeads;
    shape.insert(shape.begin() + 2, heads / kvHeads);
    return g.reshape(value, shape);
  }

  SmallVector<int64_t> maskShape() {
    SmallVector<int64_t> shape(shapeOf(op.getMask()));
    bool shared = shape[1] == 1 && heads != 1;
    shape[1] = shared ? 1 : kvHeads;
    shape.insert(shape.begin() + 2, shared ? 1 : heads / kvHeads);
    return shape;
  }

  /// Of every kv head of every sample.
  Value dot(Value x, Value y, ArrayRef<int64_t> xDims,
            ArrayRef<int64_t> yDims) {
    constexpr int64_t both[] = {0, 1};
    return DotOp::create(g.b, x, y, both, both, xDims, yDims);
  }

  Value probabilities(Value q) {
    Value scores = dot(q, op.getK(), 4, 3);
    if (auto cap = op.getSoftcap()) {
      double limit = cap->convertToDouble();
      capped = g.unary(UnaryKind::tanh, g.mul(scores, 1 / limit));
      scores = g.mul(capped, limit);
    }
    if (Value given = op.getMask()) {
      Value mask = g.reshape(given, maskShape());
      scores = elementType(given).isInteger(1)
                   ? g.select(mask, scores, -INFINITY)
                   : g.add(scores, g.cast(mask, elementType(scores)));
    }
    if (op.getCausal()) {
      Value last = g.indexAlong(3, queries, 5);
      last = g.add(last, static_cast<double>(keys - queries));
      Value attended =
          g.compare(CompareKind::le, g.indexAlong(4, keys, 5), last);
      scores = g.select(attended, scores, -INFINITY);
    }
    auto softmax = [&](Value v) -> Value {
      return SoftmaxOp::create(g.b, v, 4, /*log=*/false);
    };
    bool mayBeEmpty = op.getMask() || (op.getCausal() && keys < queries);
    if (!op.getEmptyRowsZero() || !mayBeEmpty)
      return softmax(scores);
    Value largest = g.reduce(ReduceOpKind::max, scores, 4);
    Value isEmpty = g.compare(CompareKind::eq, largest, -INFINITY);
    Value zero = g.number(scores, 0);
    return g.select(isEmpty, zero, softmax(g.select(isEmpty, zero, scores)));
  }

  AttentionOp op;
  GradientBuilder &g;
  int64_t heads, queries, kvHeads, keys;
  /// tanh of the scores over the cap, when there is one.
  Value capped;
};
} // namespace

static LogicalResult attention(AttentionOp op, GradientBuilder &g) {
  AttentionGradient(op, g).build();
  return success();
}

void ax::attachAttentionGradients(MLIRContext &context) {
  attachGradient<AttentionOp, attention>(context);
}
