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
#include "NarrowType.h"
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
    return isProduct(op) ||
           ((isElementwise(op) || isView(op) ||
             isa<ConcatOp, PadOp, PoolOp, DropoutOp>(op)) &&
            !wantsDigits(op) && !scalesSum(op) && isMadeOf(ofProducts, op));
  }
  /// A batch norm's mean or deviation.
  bool isStatistic(Operation *op) const {
    if (auto reduce = dyn_cast<ReduceOp>(op))
      return ofProducts.contains(reduce.getOperand()) && leavesChannels(reduce);
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

  /// Whether all is reduced but dimension 1, or, of a batch that is cut into
  /// parts, 0 and 2.
  static bool leavesChannels(ReduceOp reduce) {
    SmallVector<int64_t> kept;
    int64_t rank = tensorType(reduce.getOperand()).getRank();
    for (int64_t dim = 0; dim < rank; ++dim)
      if (!llvm::is_contained(reduce.getDims(), dim))
        kept.push_back(dim);
    return kept == ArrayRef<int64_t>{1} || kept == ArrayRef<int64_t>{0, 2};
  }

  /// What autocast does in f32, and so all that is made of it: parts of a
  /// softmax that is written out, and of norms by windows.
  static bool wantsDigits(Operation *op) {
    if (auto unary = dyn_cast<UnaryOp>(op))
      return unary.getKind() == UnaryKind::exp ||
             unary.getKind() == UnaryKind::log;
    auto binary = dyn_cast<BinaryOp>(op);
    return binary && binary.getKind() == BinaryKind::pow;
  }

  /// Whether weights scale more than a convolution, whose batch norm does that:
  /// those that say how much of a block is added may be small next to it.
  static bool scalesSum(Operation *op) {
    auto binary = dyn_cast<BinaryOp>(op);
    if (!binary)
      return false;
    auto scales = [](Value value, Value by) {
      bool isNumber = tensorType(by).getNumElements() == 1 && splatNumber(by);
      return !isNumber && isWeight(by) && !isConvolution(value);
    };
    switch (binary.getKind()) {
    case BinaryKind::mul:
      return scales(binary.getLhs(), binary.getRhs()) ||
             scales(binary.getRhs(), binary.getLhs());
    case BinaryKind::div:
      return scales(binary.getLhs(), binary.getRhs());
    default:
      return false;
    }
  }
  /// Whether a convolution gives `value`, perhaps with a bias.
  static bool isConvolution(Value value) {
    for (;;) {
      Operation *op = value.getDefiningOp();
      auto sum = dyn_cast_or_null<BinaryOp>(op);
      if (isView(op))
        value = op->getOperand(0);
      else if (sum && sum.getKind() == BinaryKind::add &&
               (isWeight(sum.getLhs()) || isWeight(sum.getRhs())))
        value = sum->getOperand(isWeight(sum.getLhs()));
      else
        return isa_and_present<ConvOp, ConvTransposeOp>(op);
    }
  }

  /// Whether a product reads `value`, and something else does. What a product
  /// gives is rounded by it.
  static bool isRoundedForSome(Value value) {
    Operation *maker = value.getDefiningOp();
    if (isProduct(maker) || isView(maker))
      return false;
    SmallVector<Operation *> readers;
    addReaders(value, readers);
    return readers.size() > 1 && llvm::any_of(readers, [](Operation *reader) {
             return isProduct(reader) && !isRowByFewBits(reader);
           });
  }
  /// Adds those of its views, too.
  static void addReaders(Value value, SmallVectorImpl<Operation *> &readers) {
    for (Operation *user : value.getUsers())
      if (isView(user))
        addReaders(user->getResult(0), readers);
      else
        readers.push_back(user);
  }

  void round(Value value) const {
    Operation *maker = value.getDefiningOp();
    MarkStageAndAction mark(Action::Forward, maker->getAttr(kStage));
    OpBuilder builder(value.getContext(), &mark);
    builder.setInsertionPointAfter(maker);
    SmallVector<OpOperand *> readers(llvm::make_pointer_range(value.getUses()));
    // Those of later stages are behind those of earlier ones, which add up
    // their gradients.
    llvm::stable_sort(readers, [](OpOperand *a, OpOperand *b) {
      return stageOf(a->getOwner()) < stageOf(b->getOwner());
    });
    Value narrow = roundBefore(builder, value);
    // A stage widens what it gets from another one.
    llvm::SmallMapVector<Attribute, Value, 2> ofStages;
    for (OpOperand *reader : readers) {
      mark.stage = reader->getOwner()->getAttr(kStage);
      Value &wide = ofStages[mark.stage];
      if (!wide)
        wide = CastOp::create(builder, value.getLoc(), value.getType(), narrow);
      reader->set(wide);
    }
    if (maker->use_empty())
      maker->erase();
  }
  static int64_t stageOf(Operation *op) {
    auto stage = op->getAttrOfType<IntegerAttr>(kStage);
    return stage ? stage.getInt() : -1;
  }

  /// Returns `value`, rounded. An activation that rounds no number is one of
  /// rounded numbers then, and `value` is unused.
  Value roundBefore(OpBuilder &builder, Value value) const {
    Type element = narrowType(type, value.getContext());
    UnaryOp relu = unaryOf(value, UnaryKind::relu);
    Value exact = relu ? relu.getOperand() : value;
    Value narrow = CastOp::create(builder, value.getLoc(),
                                  tensorType(value).clone(element), exact);
    return relu ? UnaryOp::create(builder, value.getLoc(), UnaryKind::relu,
                                  narrow)
                : narrow;
  }

  llvm::DenseSet<Value> ofProducts, statistics;
};

} // namespace
