//===- MultiplyFloat8.cpp - Scales behind products of eight bits ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Example: a quantised Linear, as ONNX files have it,
//
//   x = cast qx * sx,   w = cast qw * sw,   y = x w
//
// of floats of eight bits qx and qw, a scale sx and one of each column sw, is
//
//   y = (qx qw) * sx * sw
//
// where qx qw is a product that a GPU's library does on eight bits.
//
//===----------------------------------------------------------------------===//
#include "EightBitProducts.h"
#include "ForEachStage.h"
#include "ScaledProducts.h"
#include "ax/Codegen/LocalPasses.h"

#include <array>

namespace ax::codegen {
#define GEN_PASS_DEF_MULTIPLYFLOAT8
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

namespace {

struct MultiplyFloat8Pass
    : codegen::impl::MultiplyFloat8Base<MultiplyFloat8Pass> {
  void runOnOperation() override {
    forEachStage(getOperation(), [](LocalStageOp stage) {
      for (Operation &op : llvm::make_early_inc_range(stage.getBlock()))
        if (isProductOfFloat8(&op))
          multiply(&op);
      removeUnused(stage.getBlock());
    });
  }

  static void multiply(Operation *product) {
    std::array<ScaledFactor, 2> factors = {
        *matchScaledFloat8(product->getOperand(0)),
        *matchScaledFloat8(product->getOperand(1))};
    OpBuilder builder(product);
    TensorBuilder t(product->getLoc(), builder);
    Operation *narrow = builder.clone(*product);
    for (auto [i, factor] : llvm::enumerate(factors))
      narrow->setOperand(i, numbersOf(factor, builder));
    // They were made behind it.
    narrow->moveBefore(product);
    Value y = narrow->getResult(0);
    RankedTensorType wanted = tensorType(y);
    y.setType(wanted.clone(builder.getF32Type()));
    bool mayScale = multipliesFloat8(narrow);
    SmallVector<Value, 2> scales;
    for (auto [i, factor] : llvm::enumerate(factors)) {
      if (!factor.scale.value)
        continue;
      if (Value scale = alongResult(narrow, i, factor.scale, t))
        scales.push_back(t.cast(scale, builder.getF32Type()));
      else
        mayScale = false;
    }
    if (!mayScale) {
      narrow->erase();
      return;
    }
    for (Value scale : scales)
      y = t.mul(y, scale);
    product->getResult(0).replaceAllUsesWith(
        t.cast(y, wanted.getElementType()));
    product->erase();
  }
};

} // namespace
