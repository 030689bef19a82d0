//===- ComposeAttention.cpp - Attention of products and a softmax ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ForEachStage.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Gradients/AttentionParts.h"

namespace ax::codegen {
#define GEN_PASS_DEF_COMPOSEATTENTION
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

namespace {

struct ComposeAttentionPass
    : codegen::impl::ComposeAttentionBase<ComposeAttentionPass> {
  void runOnOperation() override {
    forEachStage(getOperation(), [](LocalStageOp stage) {
      for (auto op :
           llvm::make_early_inc_range(stage.getBlock().getOps<AttentionOp>()))
        compose(op);
    });
  }

  static void compose(AttentionOp op) {
    OpBuilder builder(op);
    TensorBuilder t(op.getLoc(), builder);
    AttentionParts parts(op, t);
    Value mixed =
        parts.dot(parts.probabilities(parts.scaledQueries()), op.getV(), 4, 2);
    op.getResult().replaceAllUsesWith(
        t.reshape(mixed, shapeOf(op.getResult())));
    op.erase();
  }
};

} // namespace
