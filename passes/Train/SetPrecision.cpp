//===- SetPrecision.cpp - Contractions in a narrower type -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Micikevicius et al., arXiv 1710.03740: weights, sums and the optimizer stay
// in f32.
//
//===----------------------------------------------------------------------===//
#include "../Match.h"
#include "ax/Dialect/StageAndAction.h"
#include "ax/Passes/Passes.h"

namespace ax {
#define GEN_PASS_DEF_SETPRECISION
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;

namespace {

struct SetPrecision : ax::impl::SetPrecisionBase<SetPrecision> {
  using SetPrecisionBase::SetPrecisionBase;

  void runOnOperation() final {
    if (type.type == Precision::FP32)
      return;
    for (ProgramOp program : getOperation().getBody().getOps<ProgramOp>())
      for (Operation &op :
           llvm::make_early_inc_range(program.getBody().front()))
        if (isa<LinearOp, DotOp, ConvOp, AttentionGradientOp>(op) &&
            elementType(op.getResult(0)).isF32())
          narrow(&op);
  }

  static Value castTo(OpBuilder &builder, Value value, Type element) {
    return CastOp::create(builder, value.getLoc(),
                          tensorType(value).clone(element), value);
  }

  /// Operands are rounded, results are widened.
  void narrow(Operation *op) {
    Builder types(op->getContext());
    Type element = type.type == Precision::BF16 ? Type(types.getBF16Type())
                                                : Type(types.getF16Type());
    MarkStageAndAction mark(markedAction(op), op->getAttr(kStage));
    OpBuilder builder(op, &mark);
    for (OpOperand &operand : op->getOpOperands())
      if (elementType(operand.get()).isF32())
        operand.set(castTo(builder, operand.get(), element));
    builder.setInsertionPointAfter(op);
    for (Value result : op->getResults()) {
      result.setType(tensorType(result).clone(element));
      Value wide = castTo(builder, result, builder.getF32Type());
      result.replaceAllUsesExcept(wide, wide.getDefiningOp());
    }
  }
};

} // namespace
