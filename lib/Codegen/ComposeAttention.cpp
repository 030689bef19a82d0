//===- ComposeAttention.cpp - Attention of products and a softmax ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ForEachStage.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Gradients/AttentionParts.h"

#include "llvm/ADT/MapVector.h"

namespace ax::codegen {
#define GEN_PASS_DEF_COMPOSEATTENTION
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

/// What factors are rounded to; null where they stay as they are.
template <typename Op>
static Type productTypeOf(Op op) {
  Type element = elementType(op.getQ());
  return op.getProductType().value_or(isNarrowFloat(element) ? element
                                                             : Type());
}

template <typename Op>
static bool isForCudnn(Op op) {
  Type type = productTypeOf(op);
  if (!type || !(type.isF16() || type.isBF16()) || op.getMask() ||
      op.getSoftcap())
    return false;
  ArrayRef<int64_t> q = shapeOf(op.getQ()), k = shapeOf(op.getK());
  if (op.getCausal() && q[2] != k[2])
    return false;
  constexpr int64_t largestHead = 128, headStep = 8;
  for (int64_t size : {q[3], shapeOf(op.getV())[3]})
    if (size == 0 || size > largestHead || size % headStep != 0)
      return false;
  return tensorType(op.getResult()).getNumElements() > 0 && k[2] > 0;
}

/// The operands that are tensors of floats become such of `type`, and so do
/// results, which are as before to others.
static void compute(Operation *op, Type type) {
  OpBuilder builder(op);
  TensorBuilder before(op->getLoc(), builder);
  for (OpOperand &operand : op->getOpOperands())
    operand.set(before.cast(operand.get(), type));
  builder.setInsertionPointAfter(op);
  TensorBuilder behind(op->getLoc(), builder);
  for (OpResult result : op->getResults()) {
    RankedTensorType old = tensorType(result);
    if (old.getElementType() == type)
      continue;
    result.setType(old.clone(type));
    Value wide = behind.cast(result, old.getElementType());
    result.replaceAllUsesExcept(wide, wide.getDefiningOp());
  }
}

/// Whether the one is the gradient of what the other computes, in the same
/// type.
static bool isGradientOf(AttentionGradientOp gradient, AttentionOp attention) {
  return productTypeOf(gradient) == productTypeOf(attention) &&
         gradient.getEmptyRowsZero() == attention.getEmptyRowsZero() &&
         gradient.getResult() == attention.getResult() &&
         gradient.getQ() == attention.getQ() &&
         gradient.getK() == attention.getK() &&
         gradient.getV() == attention.getV() &&
         gradient.getScale() == attention.getScale() &&
         gradient.getCausal() == attention.getCausal();
}

/// Attention, and gradients that are given its sums.
static void shareSums(AttentionOp attention,
                      ArrayRef<AttentionGradientOp> gradients) {
  OpBuilder builder(attention);
  Type sums = RankedTensorType::get(shapeOf(attention.getQ()).drop_back(),
                                    builder.getF32Type());
  auto shared = LocalAttentionOp::create(
      builder, attention.getLoc(), attention.getResult().getType(), sums,
      attention.getQ(), attention.getK(), attention.getV(),
      attention.getScaleAttr(), attention.getCausalAttr(),
      attention.getEmptyRowsZeroAttr());
  shared->setDiscardableAttrs(attention->getDiscardableAttrDictionary());
  attention.getResult().replaceAllUsesWith(shared.getResult());
  attention.erase();
  for (AttentionGradientOp gradient : gradients) {
    builder.setInsertionPoint(gradient);
    auto made = LocalAttentionGradientOp::create(
        builder, gradient.getLoc(), gradient.getResultTypes(), gradient.getQ(),
        gradient.getK(), gradient.getV(), gradient.getResult(),
        gradient.getGradient(), shared.getLogSums(), gradient.getScaleAttr(),
        gradient.getCausalAttr(), gradient.getEmptyRowsZeroAttr());
    made->setDiscardableAttrs(gradient->getDiscardableAttrDictionary());
    gradient.replaceAllUsesWith(made);
    gradient.erase();
  }
}

namespace {

struct ComposeAttentionPass
    : codegen::impl::ComposeAttentionBase<ComposeAttentionPass> {
  using ComposeAttentionBase::ComposeAttentionBase;

  void runOnOperation() override {
    forEachStage(getOperation(), [&](LocalStageOp stage) {
      Block &block = stage.getBlock();
      SmallVector<AttentionOp> all(block.getOps<AttentionOp>());
      SmallVector<AttentionGradientOp> backwards(
          block.getOps<AttentionGradientOp>());
      llvm::MapVector<AttentionOp, SmallVector<AttentionGradientOp, 1>> sharing;
      for (AttentionGradientOp gradient : backwards)
        if (auto attention = gradient.getResult().getDefiningOp<AttentionOp>();
            cudnn && attention && isForCudnn(attention) &&
            isForCudnn(gradient) && isGradientOf(gradient, attention))
          sharing[attention].push_back(gradient);
      llvm::for_each(all, [&](AttentionOp op) { give(op); });
      llvm::for_each(backwards, [&](AttentionGradientOp op) { give(op); });
      for (auto &[attention, gradients] : sharing)
        shareSums(attention, gradients);
    });
  }

  template <typename Op>
  void give(Op op) {
    if (cudnn && isForCudnn(op))
      compute(op, productTypeOf(op));
    else
      compose(op);
  }

  static void compose(AttentionOp op) {
    OpBuilder builder(op);
    TensorBuilder t(op.getLoc(), builder);
    AttentionParts parts(AttentionValues(op), t, productTypeOf(op));
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
    AttentionGradientParts parts(AttentionValues(op), op.getResult(),
                                 op.getGradient(), t, productTypeOf(op));
    op.getDv().replaceAllUsesWith(parts.ofV());
    op.getDq().replaceAllUsesWith(parts.ofQ());
    op.getDk().replaceAllUsesWith(parts.ofK());
    op.erase();
  }
};

} // namespace
