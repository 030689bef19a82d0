//===- WidenFactors.cpp - Products of floats of eight bits ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A product of two numbers of eight bits is exact in f32, and each of them in
// bf16. So a library that has products of wider types alone gives what one for
// these would that sums up in f32. Where a GPU's library has one, products
// whose shapes fit it stay.
//
//===----------------------------------------------------------------------===//
#include "EightBitProducts.h"
#include "ForEachStage.h"
#include "Library.h"
#include "ax/Codegen/LocalPasses.h"

namespace ax::codegen {
#define GEN_PASS_DEF_WIDENFACTORS
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

namespace {

struct WidenFactorsPass : codegen::impl::WidenFactorsBase<WidenFactorsPass> {
  using WidenFactorsBase::WidenFactorsBase;

  void runOnOperation() override {
    Builder types(&getContext());
    Type wide = gpu ? Type(types.getBF16Type()) : Type(types.getF32Type());
    forEachStage(getOperation(), [&](LocalStageOp stage) {
      for (Operation &op : llvm::make_early_inc_range(stage.getBlock()))
        if (isa_and_present<LinearOp, DotOp>(getLibraryCore(&op)) &&
            !(float8 && multipliesFloat8(&op)))
          widen(&op, wide, gpu);
    });
  }

  static void widen(Operation *op, Type wide, bool isMarked) {
    constexpr unsigned numFactors = 2;
    OpBuilder builder(op);
    for (unsigned i = 0; i < numFactors; ++i) {
      Value factor = op->getOperand(i);
      RankedTensorType type = tensorType(factor);
      if (!isFloat8(type.getElementType()))
        continue;
      setLibraryOperand(
          op, i,
          CastOp::create(builder, op->getLoc(), type.clone(wide), factor));
      if (isMarked)
        op->setAttr(kWidened, builder.getUnitAttr());
    }
  }
};

} // namespace
