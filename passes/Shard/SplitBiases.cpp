//===- SplitBiases.cpp - Biases stand alone while sums are partial --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Dialect/StageAndAction.h"
#include "ax/Passes/Passes.h"

#include "mlir/IR/Builders.h"

namespace ax {
#define GEN_PASS_DEF_SPLITBIASES
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;

/// Biases are added after the sum is complete, so they stand alone until
/// code generation joins what can be. False where there is none.
template <typename OpT>
static bool splitBias(OpT op, int64_t channelDim) {
  Value bias = op.getBias();
  if (!bias)
    return false;
  OpBuilder builder(op);
  builder.setInsertionPointAfter(op);
  RankedTensorType type = tensorType(op.getResult());
  Value shaped = bias;
  if (channelDim + 1 != type.getRank()) {
    SmallVector<int64_t> shape(type.getRank() - channelDim, 1);
    shape[0] = type.getDimSize(channelDim);
    shaped = ReshapeOp::create(
        builder, op.getLoc(),
        RankedTensorType::get(shape, type.getElementType()), bias);
  }
  op.getBiasMutable().clear();
  auto sum = BinaryOp::create(builder, op.getLoc(), BinaryKind::add,
                              op.getResult(), shaped);
  for (Operation *made = op->getNextNode(); made != sum->getNextNode();
       made = made->getNextNode())
    copyStageAndAction(op, made);
  op.getResult().replaceAllUsesExcept(sum.getResult(), sum);
  return true;
}

namespace {
struct SplitBiases : ax::impl::SplitBiasesBase<SplitBiases> {
  void runOnOperation() final {
    bool changed = false;
    getOperation()->walk([&](Operation *op) {
      if (auto linear = dyn_cast<LinearOp>(op))
        changed |=
            splitBias(linear, tensorType(linear.getResult()).getRank() - 1);
      else if (auto conv = dyn_cast<ConvOp>(op))
        changed |= splitBias(conv, 1);
      else if (auto conv = dyn_cast<ConvTransposeOp>(op))
        changed |= splitBias(conv, 1);
    });
    if (!changed)
      markAllAnalysesPreserved();
  }
};
} // namespace
