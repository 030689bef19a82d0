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
      Block &block = stage.getBlock();
      for (auto op : llvm::make_early_inc_range(block.getOps<AttentionOp>()))
        compose(op);
      for (auto op :
           llvm::make_early_inc_range(block.getOps<AttentionGradientOp>()))
        compose(op);
    });
  }

  /// That of narrow operands, as they are multiplied; else null.
  template <typename Op>
  static Type narrowTypeOf(Op op) {
    Type element = elementType(op.getQ());
    return isNarrowFloat(element) ? element : Type();
  }

  static void compose(AttentionOp op) {
    OpBuilder builder(op);
    TensorBuilder t(op.getLoc(), builder);
    AttentionParts parts(AttentionValues(op), t, narrowTypeOf(op));
    Value mixed =
        parts.dot(parts.probabilities(parts.scaledQueries()), op.getV(), 4, 2);
    op.getResult().replaceAllUsesWith(
        t.cast(t.reshape(mixed, shapeOf(op.getResult())),
               elementType(op.getResult())));
    op.erase();
  }

  static void compose(AttentionGradientOp op) {
    OpBuilder builder(op);
    TensorBuilder t(op.getLoc(), builder);
    AttentionGradientParts parts(
        AttentionValues(op), op.getResult(), op.getGradient(), t,
        op.getProductType().value_or(narrowTypeOf(op)));
    op.getDv().replaceAllUsesWith(parts.ofV());
    op.getDq().replaceAllUsesWith(parts.ofQ());
    op.getDk().replaceAllUsesWith(parts.ofK());
    op.erase();
  }
};

} // namespace
