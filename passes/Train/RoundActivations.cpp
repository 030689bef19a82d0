//===- RoundActivations.cpp - One type for all who read a value -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Example: a block of a residual network in mixed precision,
//
//   z = f + r0                f is of convolutions, so is r0
//   r = relu z                a convolution reads r, rounded,
//   s = g + r                 and a sum reads it in f32
//
// keeps r in both types, and for its gradient a third tensor: that of z, in
// f32. As
//
//   z' = cast z to bf16       r' = relu z'       r = cast r' to f32
//
// the convolution reads r', the sum r' widened, and z' has a gradient in bf16,
// which is what PyTorch's autocast does. There, too, what a layer norm, an
// embedding, an input or a layer's scale has part in stays f32: so do the sums
// that transformers carry from block to block.
//
//===----------------------------------------------------------------------===//
#include "../Match.h"
#include "ax/Dialect/OpTraits.h"
#include "ax/Dialect/StageAndAction.h"
#include "ax/Passes/Passes.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

namespace ax {
#define GEN_PASS_DEF_ROUNDACTIVATIONS
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;

static bool isProduct(Operation *op) {
  return isa_and_present<LinearOp, DotOp, ConvOp, ConvTransposeOp>(op);
}

static bool isF32(Value value) {
  return isa<RankedTensorType>(value.getType()) && elementType(value).isF32();
}

namespace {

struct RoundActivations : ax::impl::RoundActivationsBase<RoundActivations> {
  using RoundActivationsBase::RoundActivationsBase;

  void runOnOperation() final {
    if (type.type == Precision::FP32)
      return;
    for (ProgramOp program : getOperation().getBody().getOps<ProgramOp>()) {
      ofProducts.clear();
      statistics.clear();
      SmallVector<Value> rounded;
      for (Operation &op : program.getBody().front()) {
        if (op.getNumResults() != 1 || !isF32(op.getResult(0)))
          continue;
        Value value = op.getResult(0);
        if (isStatistic(&op))
          statistics.insert(value);
        else if (isOfProducts(&op))
          ofProducts.insert(value);
        if (ofProducts.contains(value) && isRoundedForSome(value))
          rounded.push_back(value);
      }
      for (Value value : rounded)
        round(value);
    }
  }

private:
  /// Whether `op` makes what it gives of products alone, but for weights and
  /// statistics.
  bool isOfProducts(Operation *op) const {
    return isProduct(op) || ((isElementwise(op) || isView(op) ||
                              isa<ConcatOp, PadOp, PoolOp>(op)) &&
                             !scalesSum(op) && isMadeOf(ofProducts, op));
  }
  /// As a batch norm's mean and deviation.
  bool isStatistic(Operation *op) const {
    if (auto reduce = dyn_cast<ReduceOp>(op))
      return ofProducts.contains(reduce.getOperand());
    return (isElementwise(op) || isView(op)) && isMadeOf(statistics, op);
  }
  bool isMadeOf(const DenseSet<Value> &values, Operation *op) const {
    bool isAny = false;
    for (Value operand : op->getOperands()) {
      if (!isF32(operand))
        continue;
      if (values.contains(operand))
        isAny = true;
      else if (!isWeight(operand) && !statistics.contains(operand))
        return false;
    }
    return isAny;
  }

  /// Whether weights multiply more than a product, whose batch norm does that:
  /// those that say how much of a block is added may be small next to it.
  bool scalesSum(Operation *op) const {
    auto binary = dyn_cast<BinaryOp>(op);
    if (!binary || binary.getKind() != BinaryKind::mul)
      return false;
    auto scales = [](Value value, Value by) {
      while (isView(value.getDefiningOp()))
        value = value.getDefiningOp()->getOperand(0);
      return tensorType(by).getNumElements() > 1 && isWeight(by) &&
             !isProduct(value.getDefiningOp());
    };
    return scales(binary.getLhs(), binary.getRhs()) ||
           scales(binary.getRhs(), binary.getLhs());
  }

  /// Whether a product reads `value`, and something else does. What a product
  /// gives is rounded by it.
  static bool isRoundedForSome(Value value) {
    return !value.hasOneUse() && !isProduct(value.getDefiningOp()) &&
           llvm::any_of(value.getUsers(), [](Operation *user) {
             return isProduct(user) && !isRowByFewBits(user);
           });
  }

  /// Whether `op` gives one of the numbers that it is given, or 0: of rounded
  /// ones what it would be rounded to.
  static bool chooses(Operation *op) {
    auto unary = dyn_cast<UnaryOp>(op);
    auto pool = dyn_cast<PoolOp>(op);
    return (unary && unary.getKind() == UnaryKind::relu) ||
           (pool && pool.getKind() == PoolKind::max);
  }

  void round(Value value) const {
    Operation *maker = value.getDefiningOp();
    MarkStageAndAction mark(Action::Forward, maker->getAttr(kStage));
    OpBuilder builder(value.getContext(), &mark);
    builder.setInsertionPointAfter(maker);
    SmallVector<OpOperand *> readers(llvm::make_pointer_range(value.getUses()));
    Value narrow = roundBefore(builder, value);
    // What goes to another stage is widened there.
    llvm::SmallMapVector<Attribute, Value, 2> ofStages;
    for (OpOperand *reader : readers) {
      mark.stage = reader->getOwner()->getAttr(kStage);
      Value &wide = ofStages[mark.stage];
      if (!wide)
        wide = CastOp::create(builder, value.getLoc(), value.getType(), narrow);
      reader->set(wide);
    }
    for (Operation *op = maker; op->use_empty();) {
      Operation *unused = op;
      op = op->getOperand(0).getDefiningOp();
      unused->erase();
    }
  }

  /// Returns `value`, rounded as early as can be, and leaves it and what it
  /// is chosen from unused then.
  Value roundBefore(OpBuilder &builder, Value value) const {
    Type element = type.type == Precision::FP16 ? Type(builder.getF16Type())
                                                : Type(builder.getBF16Type());
    SmallVector<Operation *> choices;
    Value exact = value;
    while (chooses(exact.getDefiningOp()) &&
           exact.getDefiningOp()->getOperand(0).hasOneUse()) {
      choices.push_back(exact.getDefiningOp());
      exact = choices.back()->getOperand(0);
    }
    Value narrow = CastOp::create(builder, exact.getLoc(),
                                  tensorType(exact).clone(element), exact);
    for (Operation *choice : llvm::reverse(choices)) {
      Operation *rounded = builder.clone(*choice);
      rounded->setOperand(0, narrow);
      narrow = rounded->getResult(0);
      narrow.setType(tensorType(narrow).clone(element));
    }
    return narrow;
  }

  llvm::DenseSet<Value> ofProducts, statistics;
};

} // namespace
