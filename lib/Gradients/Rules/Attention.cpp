//===- Attention.cpp - The gradient of attention --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The scores are computed again, not kept.
//
//===----------------------------------------------------------------------===//

#include "../GradientRules.h"
#include "ax/Gradients/AttentionParts.h"

using namespace mlir;
using namespace ax;

static LogicalResult attention(AttentionOp op, GradientBuilder &g) {
  AttentionParts parts(op, g);
  Value dy = parts.byGroups(g.ofResult());
  Value scale = g.number(op.getQ(), op.getScale().convertToDouble());
  Value q = parts.scaledQueries();
  Value p = parts.probabilities(q);
  g.give(op.getVMutable(), [&] { return parts.dot(p, dy, {2, 3}, {2, 3}); });

  Value total = g.sum(g.mul(dy, parts.byGroups(op.getResult())), 4);
  Value ds = g.mul(p, g.sub(parts.dot(dy, op.getV(), 4, 3), total));
  g.give(op.getMaskMutable(), [&] {
    return g.reshape(g.sumTo(ds, parts.maskShape()), shapeOf(op.getMask()));
  });
  if (Value capped = parts.capped)
    ds = g.mul(ds, g.add(g.neg(g.mul(capped, capped)), 1));
  g.give(op.getQMutable(), [&] {
    return g.reshape(g.mul(parts.dot(ds, op.getK(), 4, 2), scale),
                     shapeOf(op.getQ()));
  });
  g.give(op.getKMutable(), [&] { return parts.dot(ds, q, {2, 3}, {2, 3}); });
  return success();
}

void ax::attachAttentionGradients(MLIRContext &context) {
  attachGradient<AttentionOp, attention>(context);
}
