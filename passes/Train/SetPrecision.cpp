//===- SetPrecision.cpp - Contractions in a narrower type -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Micikevicius et al., arXiv 1710.03740: weights, sums and the optimizer stay
// in f32.
//
//===----------------------------------------------------------------------===//
#include "../Match.h"
#include "NarrowType.h"
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
    bool isAny = false, isAnyOfFewBits = false;
    for (ProgramOp program : getOperation().getBody().getOps<ProgramOp>())
      for (Operation &op :
           llvm::make_early_inc_range(program.getBody().front())) {
        if (op.getNumResults() == 0 || !elementType(op.getResult(0)).isF32())
          continue;
        if (isRowByFewBits(&op))
          isAnyOfFewBits = true;
        else
          isAny |= narrowProducts(&op);
      }
    if (!isAny && type.type != Precision::FP8)
      getOperation().emitWarning()
          << "--precision=" << type.toText() << " changes nothing: "
          << (isAnyOfFewBits
                  ? "one row times weights of eight bits or less stays in f32"
                  : "the model has no Linear, product, convolution or "
                    "attention of f32");
  }

  /// Returns whether `op` has products.
  bool narrowProducts(Operation *op) {
    if (isa<LinearOp, DotOp, ConvOp, ConvTransposeOp, ConvWeightGradientOp>(
            op) &&
        !hasFloat8(op))
      narrow(op);
    // Their operands stay: a mask of large numbers would be lost.
    else if (auto attention = dyn_cast<AttentionOp>(op))
      attention.setProductType(narrowType(type, &getContext()));
    else if (auto attention = dyn_cast<AttentionGradientOp>(op))
      attention.setProductType(narrowType(type, &getContext()));
    else
      return false;
    return true;
  }

  /// ax-set-float8 has rounded its factors.
  static bool hasFloat8(Operation *op) {
    return isFloat8(elementType(op->getOperand(0)));
  }

  static Value castTo(OpBuilder &builder, Value value, Type element) {
    return CastOp::create(builder, value.getLoc(),
                          tensorType(value).clone(element), value);
  }

  /// What was rounded for all who read it is not rounded again.
  static Value roundTo(OpBuilder &builder, Value value, Type element) {
    auto widened = value.getDefiningOp<CastOp>();
    return widened && elementType(widened.getOperand()) == element
               ? widened.getOperand()
               : castTo(builder, value, element);
  }

  /// Operands are rounded, the result is widened.
  void narrow(Operation *op) {
    Type element = narrowType(type, &getContext());
    MarkStageAndAction mark(markedAction(op), op->getAttr(kStage));
    OpBuilder builder(op, &mark);
    Value result = op->getResult(0);
    for (OpOperand &operand : op->getOpOperands())
      operand.set(roundTo(builder, operand.get(), element));
    result.setType(tensorType(result).clone(element));
    builder.setInsertionPointAfter(op);
    Value wide = castTo(builder, result, builder.getF32Type());
    result.replaceAllUsesExcept(wide, wide.getDefiningOp());
  }
};

} // namespace
