//===- NarrowConvolutions.cpp - Results of 16 bits ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ForEachStage.h"
#include "ax/Codegen/LocalPasses.h"

namespace ax::codegen {
#define GEN_PASS_DEF_NARROWCONVOLUTIONS
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

namespace {

struct NarrowConvolutionsPass
    : codegen::impl::NarrowConvolutionsBase<NarrowConvolutionsPass> {
  void runOnOperation() override {
    forEachStage(getOperation(), [](LocalStageOp stage) {
      for (Operation &op : llvm::make_early_inc_range(stage.getBlock()))
        if (isa<ConvOp, ConvTransposeOp, ConvWeightGradientOp>(op))
          narrow(&op);
    });
  }

  static void narrow(Operation *op) {
    Value result = op->getResult(0);
    RankedTensorType wide = tensorType(result);
    Type factor = tensorType(op->getOperand(0)).getElementType();
    if (!(factor.isF16() || factor.isBF16()) || factor == wide.getElementType())
      return;
    result.setType(wide.clone(factor));
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    auto cast = CastOp::create(builder, op->getLoc(), wide, result);
    result.replaceAllUsesExcept(cast, cast);
  }
};

} // namespace
