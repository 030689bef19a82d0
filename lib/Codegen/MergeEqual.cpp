//===- MergeEqual.cpp - Nothing is done twice, or for nobody --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "MergeEqual.h"

#include "ForEachStage.h"
#include "ax/Codegen/LocalPasses.h"
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

void ax::codegen::mergeEqual(LocalStageOp stage) {
  removeUnused(stage.getBlock());
  IRRewriter rewriter(stage.getContext());
  DominanceInfo dominance(stage);
  eliminateCommonSubExpressions(rewriter, dominance, stage);
}

namespace {

struct MergeEqualPass : codegen::impl::MergeEqualBase<MergeEqualPass> {
  void runOnOperation() override {
    forEachStage(getOperation(), [](LocalStageOp stage) {
      mergeEqual(stage);
      for (Operation &op : stage.getBlock())
        op.removeAttr(kApart);
    });
  }
};

} // namespace
