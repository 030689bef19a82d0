//===- MergeEqual.cpp - Nothing is done twice, or for nobody --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ForEachStage.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Dialect/Tensors.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"

namespace ax::codegen {
#define GEN_PASS_DEF_MERGEEQUAL
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

/// Whether each number of the one type is one of the other.
static bool isWider(Type type, Type than) {
  auto wide = dyn_cast<FloatType>(type), narrow = dyn_cast<FloatType>(than);
  return wide && narrow &&
         APFloat::isRepresentableBy(narrow.getFloatSemantics(),
                                    wide.getFloatSemantics());
}

/// E.g. bf16 that a gradient wants in f32, and a product in bf16 again.
static void skipWidening(CastOp cast) {
  auto widening = cast.getOperand().getDefiningOp<CastOp>();
  if (widening &&
      widening.getOperand().getType() == cast.getResult().getType() &&
      isWider(tensorType(cast.getOperand()).getElementType(),
              tensorType(cast.getResult()).getElementType()))
    cast.getResult().replaceAllUsesWith(widening.getOperand());
}

namespace {

struct MergeEqualPass : codegen::impl::MergeEqualBase<MergeEqualPass> {
  void runOnOperation() override {
    forEachStage(getOperation(), [](LocalStageOp stage) {
      for (Operation &op : stage.getBlock())
        if (auto cast = dyn_cast<CastOp>(op))
          skipWidening(cast);
      removeUnused(stage.getBlock());
      IRRewriter rewriter(stage.getContext());
      DominanceInfo dominance(stage);
      eliminateCommonSubExpressions(rewriter, dominance, stage);
    });
  }
};

} // namespace
