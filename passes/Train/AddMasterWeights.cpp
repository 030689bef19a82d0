//===- AddMasterWeights.cpp - Trained weights are kept in f32 -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A step changes a weight by less than bf16 or f16 can tell, mostly. So what
// the optimizer changes has more digits than what layers compute with, which is
// rounded anew in each step (master weights: Micikevicius et al., arXiv
// 1710.03740, section 3.1). Example:
//
//   ax.state @w : tensor<8x8xbf16> from "model.onnx" .. {trainable}
//   %w = ax.load @w : tensor<8x8xbf16>
//
// becomes
//
//   ax.state @w : tensor<8x8xf32> from "model.onnx" .. as bf16 {trainable}
//   %m = ax.load @w : tensor<8x8xf32>
//   %w = ax.cast %m : tensor<8x8xf32> -> tensor<8x8xbf16>
//
// Each use has a cast of its own until gradients are there, so that these are
// widened before they are added.
//
//===----------------------------------------------------------------------===//
#include "../Match.h"
#include "ax/Dialect/StageAndAction.h"
#include "ax/Passes/Passes.h"

#include "llvm/ADT/STLExtras.h"

namespace ax {
#define GEN_PASS_DEF_ADDMASTERWEIGHTS
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;

namespace {

struct AddMasterWeights : ax::impl::AddMasterWeightsBase<AddMasterWeights> {
  void runOnOperation() final {
    PlanOp plan = getOperation();
    for (StateOp state : plan.getBody().getOps<StateOp>())
      widen(plan, state);
    SymbolTable states(plan);
    for (ProgramOp program : plan.getBody().getOps<ProgramOp>())
      for (LoadOp load :
           llvm::make_early_inc_range(program.getBody().getOps<LoadOp>()))
        if (auto state = states.lookup<StateOp>(load.getState());
            state && state.getType() != load.getType())
          round(load, state.getTensorType());
  }

  static void widen(PlanOp plan, StateOp state) {
    RankedTensorType type = state.getTensorType();
    Type element = type.getElementType();
    if (!state.getTrainable() || state.getFile().empty() ||
        !(element.isF16() || element.isBF16()))
      return;
    state.setFileType(element);
    state.setType(type.clone(Float32Type::get(plan.getContext())));
    plan.needVersion(PlanOp::fileTypeVersion);
  }

  static void roundBehind(GatherOp lookup) {
    Value found = lookup.getResult();
    RankedTensorType narrow = tensorType(found);
    OpBuilder builder(lookup->getContext());
    builder.setInsertionPointAfter(lookup);
    found.setType(narrow.clone(builder.getF32Type()));
    auto rounded = CastOp::create(builder, lookup.getLoc(), narrow, found);
    if (Attribute stage = lookup->getAttr(kStage))
      rounded->setAttr(kStage, stage);
    found.replaceAllUsesExcept(rounded, rounded);
  }

  /// Gives who reads the load what they did read.
  static void round(LoadOp load, RankedTensorType wide) {
    Type narrow = load.getType();
    Value master = load.getResult();
    master.setType(wide);
    for (OpOperand &use : llvm::make_early_inc_range(master.getUses())) {
      Operation *user = use.getOwner();
      // What the model has in few digits and computes with in more.
      if (auto cast = dyn_cast<CastOp>(user); cast && cast.getType() == wide) {
        cast.getResult().replaceAllUsesWith(master);
        cast.erase();
        continue;
      }
      OpBuilder builder(user);
      // Of a table only what is looked up is rounded, and has a gradient.
      if (auto lookup = dyn_cast<GatherOp>(user);
          lookup && use.getOperandNumber() == 0) {
        roundBehind(lookup);
        continue;
      }
      auto rounded = CastOp::create(builder, load.getLoc(), narrow, master);
      if (Attribute stage = user->getAttr(kStage))
        rounded->setAttr(kStage, stage);
      use.set(rounded);
    }
  }
};

} // namespace
