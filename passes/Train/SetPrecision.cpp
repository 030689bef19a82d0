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

#include "llvm/ADT/TypeSwitch.h"

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
        if (op.getNumResults() > 0 && elementType(op.getResult(0)).isF32()) {
          if (isa<LinearOp, DotOp, ConvOp, ConvTransposeOp,
                  ConvWeightGradientOp>(op) &&
              !hasFloat8(&op) && !isDilatedByChannel(&op))
            narrow(&op);
          // Their operands stay: a mask of large numbers would be lost.
          else if (auto attention = dyn_cast<AttentionOp>(op))
            attention.setProductType(getNarrow());
          else if (auto attention = dyn_cast<AttentionGradientOp>(op))
            attention.setProductType(getNarrow());
        }
  }

  Type getNarrow() {
    Builder types(&getContext());
    return type.type == Precision::FP16 ? Type(types.getF16Type())
                                        : Type(types.getBF16Type());
  }

  /// ax-set-float8 has rounded its factors.
  static bool hasFloat8(Operation *op) {
    return isFloat8(elementType(op->getOperand(0)));
  }

  /// A convolution of each channel by itself, with dilations: there is hardly a
  /// product to gain by, and oneDNN takes 100 times as long in sixteen bits.
  static bool isDilatedByChannel(Operation *op) {
    auto isSo = [](auto conv) {
      return conv.getGroups() == shapeOf(conv->getOperand(0))[1] &&
             conv.getGroups() > 1 &&
             llvm::any_of(conv.getDilations(),
                          [](int64_t dilation) { return dilation > 1; });
    };
    return TypeSwitch<Operation *, bool>(op)
        .Case<ConvOp, ConvTransposeOp, ConvWeightGradientOp>(isSo)
        .Default(false);
  }

  static Value castTo(OpBuilder &builder, Value value, Type element) {
    return CastOp::create(builder, value.getLoc(),
                          tensorType(value).clone(element), value);
  }

  /// Operands are rounded, the result is widened.
  void narrow(Operation *op) {
    Type element = getNarrow();
    MarkStageAndAction mark(markedAction(op), op->getAttr(kStage));
    OpBuilder builder(op, &mark);
    Value result = op->getResult(0);
    for (OpOperand &operand : op->getOpOperands())
      operand.set(castTo(builder, operand.get(), element));
    result.setType(tensorType(result).clone(element));
    builder.setInsertionPointAfter(op);
    Value wide = castTo(builder, result, builder.getF32Type());
    result.replaceAllUsesExcept(wide, wide.getDefiningOp());
  }
};

} // namespace
