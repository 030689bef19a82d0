//===- RoundFloat8.cpp - Sums of eight bits that are rounded behind -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ForEachStage.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Dialect/Tensors.h"

namespace ax::codegen {
#define GEN_PASS_DEF_ROUNDFLOAT8
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

namespace {

struct RoundFloat8Pass : codegen::impl::RoundFloat8Base<RoundFloat8Pass> {
  void runOnOperation() override {
    forEachStage(getOperation(), [](LocalStageOp stage) {
      for (Operation &op : llvm::make_early_inc_range(stage.getBlock()))
        if (isa<LinearOp, DotOp>(op) && isFloat8(elementType(op.getOperand(0))))
          roundBehind(&op);
    });
  }

  static void roundBehind(Operation *product) {
    Value result = product->getResult(0);
    RankedTensorType type = tensorType(result);
    OpBuilder builder(product->getContext());
    if (type.getElementType().isF32())
      return;
    builder.setInsertionPointAfter(product);
    result.setType(type.clone(builder.getF32Type()));
    auto rounded = CastOp::create(builder, product->getLoc(), type, result);
    result.replaceAllUsesExcept(rounded, rounded);
  }
};

} // namespace
