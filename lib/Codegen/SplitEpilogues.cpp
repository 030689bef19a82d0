//===- SplitEpilogues.cpp - Activations that no library has ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ForEachStage.h"
#include "Library.h"
#include "ax/Codegen/LocalPasses.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace ax::codegen {
#define GEN_PASS_DEF_SPLITEPILOGUES
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

template <typename Op>
static void split(Op contraction) {
  auto kind = contraction.getActivation();
  if (!kind || libraryActivation(*kind))
    return;
  ImplicitLocOpBuilder builder(contraction.getLoc(), contraction);
  builder.setInsertionPointAfter(contraction);
  Value result = contraction.getResult();
  Operation *last = UnaryOp::create(builder, result.getType(), *kind, result);
  Operation *first = last;
  if (Value residual = contraction.getResidual())
    last = BinaryOp::create(builder, result.getType(), BinaryKind::add,
                            last->getResult(0), residual);
  contraction.getResidualMutable().clear();
  contraction.removeActivationAttr();
  result.replaceAllUsesExcept(last->getResult(0), first);
}

namespace {

struct SplitEpiloguesPass
    : codegen::impl::SplitEpiloguesBase<SplitEpiloguesPass> {
  void runOnOperation() override {
    forEachStage(getOperation(), [](LocalStageOp stage) {
      for (Operation &op : llvm::make_early_inc_range(stage.getBlock()))
        if (auto linear = dyn_cast<LinearOp>(op))
          split(linear);
        else if (auto conv = dyn_cast<ConvOp>(op))
          split(conv);
    });
  }
};

} // namespace
