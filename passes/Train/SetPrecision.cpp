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
        if (isa<LinearOp, DotOp, ConvOp>(op) &&
            elementType(op.getResult(0)).isF32())
          narrow(&op);
  }

  static Value castTo(OpBuilder &builder, Value value, Type element) {
    return CastOp::create(builder, value.getLoc(),
                          tensorType(value).clone(element), value);
  }

  /// Operands are rounded, the result is widened, and the bias added to that.
  void narrow(Operation *op) {
    Builder types(op->getContext());
    Type element = type.type == Precision::BF16 ? Type(types.getBF16Type())
                                                : Type(types.getF16Type());
    MarkStageAndAction mark(markedAction(op), op->getAttr(kStage));
    OpBuilder builder(op, &mark);
    Value bias;
    int64_t channelDim = 0;
    auto takeBias = [&](auto contraction, int64_t dim) {
      bias = contraction.getBias();
      channelDim = dim;
      contraction.getBiasMutable().clear();
    };
    Value result = op->getResult(0);
    int64_t rank = tensorType(result).getRank();
    if (auto linear = dyn_cast<LinearOp>(op))
      takeBias(linear, rank - 1);
    else if (auto conv = dyn_cast<ConvOp>(op))
      takeBias(conv, 1);
    for (OpOperand &operand : op->getOpOperands())
      operand.set(castTo(builder, operand.get(), element));
    result.setType(tensorType(result).clone(element));
    builder.setInsertionPointAfter(op);
    Value wide = castTo(builder, result, builder.getF32Type());
    Operation *first = wide.getDefiningOp();
    if (bias) {
      SmallVector<int64_t> shape(rank - channelDim, 1);
      shape[0] = tensorType(bias).getNumElements();
      wide = BinaryOp::create(builder, op->getLoc(), BinaryKind::add, wide,
                              reshapeTo(builder, op->getLoc(), bias, shape));
    }
    result.replaceAllUsesExcept(wide, first);
  }
};

} // namespace
