//===- Attention.cpp - The gradient of attention --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../GradientRules.h"
#include "ax/Gradients/AttentionParts.h"

using namespace mlir;
using namespace ax;

/// A mask that is trained has a gradient for every score, which somebody has to
/// write: then nothing is saved by one operation.
static void compose(AttentionOp op, GradientBuilder &g) {
  AttentionGradientParts parts(AttentionValues(op), op.getResult(),
                               g.ofResult(), g);
  g.give(op.getVMutable(), [&] { return parts.ofV(); });
  g.give(op.getMaskMutable(), [&] { return parts.ofMask(); });
  g.give(op.getQMutable(), [&] { return parts.ofQ(); });
  g.give(op.getKMutable(), [&] { return parts.ofK(); });
}

static LogicalResult attention(AttentionOp op, GradientBuilder &g) {
  if (g.isWanted(op.getMaskMutable())) {
    compose(op, g);
    return success();
  }
  auto made = AttentionGradientOp::create(
      g.b, op.getQ(), op.getK(), op.getV(), op.getResult(), g.ofResult(),
      op.getMask(), op.getScaleAttr(), op.getCausalAttr(), op.getWindowAttr(),
      op.getSoftcapAttr(), op.getEmptyRowsZeroAttr(), op.getEmptyRowsMeanAttr(),
      /*product_type=*/TypeAttr());
  g.give(op.getQMutable(), [&] { return made.getDq(); });
  g.give(op.getKMutable(), [&] { return made.getDk(); });
  g.give(op.getVMutable(), [&] { return made.getDv(); });
  return success();
}

void ax::attachAttentionGradients(MLIRContext &context) {
  attachGradient<AttentionOp, attention>(context);
}
