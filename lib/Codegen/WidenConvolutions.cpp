//===- WidenConvolutions.cpp - Channels by themselves, in f32 -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A convolution of each channel by itself has few products for each number
// that it reads: there is nothing to gain by narrow ones. oneDNN has no code
// for those with dilations, which take 100 times as long as in f32, and nobody
// for those of f16.
//
//===----------------------------------------------------------------------===//
#include "ForEachStage.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Dialect/Tensors.h"
#include "llvm/ADT/TypeSwitch.h"

namespace ax::codegen {
#define GEN_PASS_DEF_WIDENCONVOLUTIONS
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

/// Whether processors do it better in f32.
static bool isSlow(Operation *op) {
  auto isByChannel = [](auto conv) {
    Type type = elementType(conv->getOperand(0));
    bool isDilated = llvm::any_of(
        conv.getDilations(), [](int64_t dilation) { return dilation > 1; });
    auto groups = static_cast<int64_t>(conv.getGroups());
    return groups > 1 && groups == shapeOf(conv->getOperand(0))[1] &&
           (type.isF16() || (type.isBF16() && isDilated));
  };
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<ConvOp, ConvTransposeOp, ConvWeightGradientOp>(isByChannel)
      .Default(false);
}

static void widen(Operation *op) {
  OpBuilder builder(op);
  Type wide = builder.getF32Type();
  for (OpOperand &operand : op->getOpOperands())
    operand.set(CastOp::create(builder, op->getLoc(),
                               tensorType(operand.get()).clone(wide),
                               operand.get()));
  Value result = op->getResult(0);
  RankedTensorType type = tensorType(result);
  if (type.getElementType() == wide)
    return;
  result.setType(type.clone(wide));
  builder.setInsertionPointAfter(op);
  auto rounded = CastOp::create(builder, op->getLoc(), type, result);
  result.replaceAllUsesExcept(rounded, rounded);
}

namespace {

struct WidenConvolutionsPass
    : codegen::impl::WidenConvolutionsBase<WidenConvolutionsPass> {
  void runOnOperation() override {
    forEachStage(getOperation(), [](LocalStageOp stage) {
      for (Operation &op : llvm::make_early_inc_range(stage.getBlock()))
        if (isSlow(&op))
          widen(&op);
    });
  }
};

} // namespace
