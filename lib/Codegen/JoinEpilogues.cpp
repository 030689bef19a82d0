//===- JoinEpilogues.cpp - Activations that a library does behind ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ForEachStage.h"
#include "Library.h"
#include "ax/Codegen/LocalPasses.h"
#include "mlir/IR/IRMapping.h"

namespace ax::codegen {
#define GEN_PASS_DEF_JOINEPILOGUES
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

/// What `conv` may do behind the sum with its residual.
static UnaryOp joinedActivation(ConvOp conv) {
  if (!conv.getResidual() || conv.getActivation() || !conv->hasOneUse())
    return {};
  auto unary = dyn_cast<UnaryOp>(*conv->user_begin());
  return unary && libraryActivation(unary.getKind()) ? unary : UnaryOp();
}

namespace {

struct JoinEpiloguesPass : codegen::impl::JoinEpiloguesBase<JoinEpiloguesPass> {
  void runOnOperation() override {
    forEachStage(getOperation(), [](LocalStageOp stage) {
      for (auto conv : llvm::to_vector(stage.getBlock().getOps<ConvOp>()))
        if (UnaryOp unary = joinedActivation(conv))
          join(conv, unary);
    });
  }

  static void join(ConvOp conv, UnaryOp unary) {
    LibraryOp library = wrapInLibrary(conv);
    library->setLoc(mergeLocations(conv, unary));
    OpBuilder builder(library.getYield());
    IRMapping mapping;
    mapping.map(unary.getOperand(), conv.getResult());
    library.setYielded(builder.clone(*unary, mapping)->getResult(0));
    unary.getResult().replaceAllUsesWith(library.getResult());
    unary.erase();
  }
};

} // namespace
