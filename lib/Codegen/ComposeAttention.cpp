//===- ComposeAttention.cpp - Attention of products and a softmax ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "CudnnAttention.h"
#include "CudnnMask.h"
#include "EmptyAttentionRows.h"
#include "ForEachStage.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Gradients/AttentionParts.h"

#include "llvm/ADT/DenseMap.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace ax::codegen {
#define GEN_PASS_DEF_COMPOSEATTENTION
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

/// What factors are rounded to; null where they stay as they are.
template <typename Op>
static Type productTypeOf(Op op) {
  Type element = elementType(op.getQ());
  return op.getProductType().value_or(isNarrowFloat(element) ? element
                                                             : Type());
}

static int64_t headOf(Value operand) { return shapeOf(operand)[3]; }

template <typename Op>
static bool hasCudnnForm(Op op, int64_t largestHead) {
  Type type = productTypeOf(op);
  if (!type || !(type.isF16() || type.isBF16()) || op.getSoftcap())
    return false;
  constexpr int64_t headStep = 8;
  for (int64_t size : {headOf(op.getQ()), headOf(op.getV())})
    if (size == 0 || size > largestHead || size % headStep != 0)
      return false;
  return tensorType(op.getResult()).getNumElements() > 0 &&
         shapeOf(op.getK())[2] > 0;
}

static bool isForCudnn(AttentionGradientOp op, int64_t largestHead) {
  // cuDNN 9.11 and 9.12 have a bug in gradients of some large heads, where
  // those of values have another size, on cards of 9.0 (cudnn-frontend's
  // notes on 1.14.1).
  constexpr int64_t largestOfOtherValues = 128;
  if (headOf(op.getQ()) != headOf(op.getV()))
    largestHead = std::min(largestHead, largestOfOtherValues);
  // A gradient with such a mask, of f32, was wrong on an H200 (cuDNN 9.19).
  bool isOfNoKeys = op.getMask() && shapeOf(op.getMask())[3] == 1 &&
                    shapeOf(op.getK())[2] > 1;
  return hasCudnnForm(op, largestHead) && !isOfNoKeys;
}

bool ax::codegen::isLeftToCudnn(Operation *op,
                                const ComposeAttentionOptions &options) {
  if (!options.cudnn)
    return false;
  if (auto forwards = dyn_cast<AttentionOp>(op))
    return hasCudnnForm(forwards, options.largestHead);
  auto gradient = dyn_cast<AttentionGradientOp>(op);
  return gradient && isForCudnn(gradient, options.largestGradientHead);
}

/// The mask becomes what cuDNN adds.
template <typename Op>
static void setMask(Op op, const CudnnMask &mask) {
  op.setCausal(mask.causal);
  op.getMaskMutable().clear();
  if (mask.added)
    op.getMaskMutable().assign(mask.added);
  if (mask.isEmpty)
    finishEmptyRows(op, mask.isEmpty);
  op.setEmptyRowsMean(false);
}

template <typename Op>
static CudnnMask makeMask(Op op, Type type) {
  OpBuilder builder(op);
  TensorBuilder t(op.getLoc(), builder);
  return makeCudnnMask(AttentionValues(op), type, t);
}

/// The operands but the mask become tensors of `type`, and so do results,
/// which are as before to others.
template <typename Op>
static void compute(Op op, Type type) {
  OpBuilder builder(op);
  TensorBuilder before(op->getLoc(), builder);
  MutableOperandRange mask = op.getMaskMutable();
  for (OpOperand &operand : op->getOpOperands())
    if (mask.empty() ||
        operand.getOperandNumber() != mask[0].getOperandNumber())
      operand.set(before.cast(operand.get(), type));
  builder.setInsertionPointAfter(op);
  TensorBuilder behind(op->getLoc(), builder);
  for (OpResult result : op->getResults()) {
    RankedTensorType old = tensorType(result);
    if (old.getElementType() == type)
      continue;
    result.setType(old.clone(type));
    Value wide = behind.cast(result, old.getElementType());
    result.replaceAllUsesExcept(wide, wide.getDefiningOp());
  }
}

/// Masks that are written out, by what they say.
using WrittenMasks = std::map<
    std::tuple<const void *, int64_t, int64_t, std::optional<int64_t>, bool>,
    Value>;

/// The mask with, as `places` and a window say, which keys a query sees.
template <typename Op>
static Value writtenMask(Op op, bool isPlaces, TensorBuilder &t) {
  int64_t queries = shapeOf(op.getQ())[2], keys = shapeOf(op.getK())[2];
  Value mask = op.getMask();
  Value further = t.sub(t.indexAlong(3, keys, 4), t.indexAlong(2, queries, 4));
  Value own = t.number(further, static_cast<double>(keys - queries));
  Value last = isPlaces ? mask : own;
  Value seen;
  if (isPlaces)
    seen = t.compare(CompareKind::le, further, last);
  if (std::optional<int64_t> window = op.getWindow()) {
    if (isPlaces && op.getCausal())
      last = t.binary(BinaryKind::min, last, own);
    Value isIn = t.compare(CompareKind::gt, further,
                           t.add(last, -static_cast<double>(*window)));
    seen = seen ? t.binary(BinaryKind::logical_and, seen, isIn) : isIn;
  }
  if (!mask || isPlaces)
    return seen;
  return elementType(mask).isInteger(1)
             ? t.binary(BinaryKind::logical_and, mask, seen)
             : t.select(seen, mask, -INFINITY);
}

/// A mask of places becomes one that says of each key whether a query sees it,
/// also by the window; so does a window alone that cuDNN has not.
template <typename Op>
static void writeMask(Op op, bool forCudnn, WrittenMasks &written) {
  bool isPlaces = op.getMask() && elementType(op.getMask()).isInteger(64);
  bool isOther = forCudnn && op.getWindow() &&
                 shapeOf(op.getQ())[2] != shapeOf(op.getK())[2];
  if (!isPlaces && !isOther)
    return;
  Value &mask =
      written[{op.getMask().getAsOpaquePointer(), shapeOf(op.getQ())[2],
               shapeOf(op.getK())[2], op.getWindow(), op.getCausal()}];
  if (!mask) {
    OpBuilder builder(op);
    TensorBuilder t(op.getLoc(), builder);
    mask = writtenMask(op, isPlaces, t);
  }
  op.getMaskMutable().assign(mask);
  op.removeWindowAttr();
}

/// Whether the one is the gradient of what the other computes, in the same
/// type.
static bool isGradientOf(AttentionGradientOp gradient, AttentionOp attention) {
  return productTypeOf(gradient) == productTypeOf(attention) &&
         gradient.getEmptyRowsZero() == attention.getEmptyRowsZero() &&
         gradient.getEmptyRowsMean() == attention.getEmptyRowsMean() &&
         gradient.getResult() == attention.getResult() &&
         gradient.getQ() == attention.getQ() &&
         gradient.getK() == attention.getK() &&
         gradient.getV() == attention.getV() &&
         gradient.getMask() == attention.getMask() &&
         gradient.getSoftcap() == attention.getSoftcap() &&
         gradient.getScale() == attention.getScale() &&
         gradient.getCausal() == attention.getCausal() &&
         gradient.getWindow() == attention.getWindow();
}

/// Whether cuDNN takes 0 for the scores of keys behind the last one, which fill
/// a block of 128: where a query's own are far below 0, exp(0 - log sum) is inf
/// and its gradient NaN. (pytorch/pytorch issue 196678; up to cuDNN 9.30.)
static bool hasScoresOfNoKey(AttentionGradientOp gradient) {
  constexpr int64_t block = 128;
  return gradient.getMask() && shapeOf(gradient.getK())[2] % block == block / 2;
}

/// What is subtracted from each other may both be more by the same number,
/// which is more than logarithms of sums are below 0. f32 keeps four digits
/// behind the point then.
static Value lift(Value x, TensorBuilder &t) { return t.add(x, 1024.0); }

/// Attention, and gradients that are given its sums.
static void shareSums(AttentionOp attention,
                      ArrayRef<AttentionGradientOp> gradients,
                      bool liftMasked) {
  OpBuilder builder(attention);
  Type sums = RankedTensorType::get(shapeOf(attention.getQ()).drop_back(),
                                    builder.getF32Type());
  auto shared = LocalAttentionOp::create(
      builder, attention.getLoc(), attention.getResult().getType(), sums,
      attention.getQ(), attention.getK(), attention.getV(), attention.getMask(),
      attention.getScaleAttr(), attention.getCausalAttr(),
      attention.getWindowAttr(), attention.getEmptyRowsZeroAttr());
  shared->setDiscardableAttrs(attention->getDiscardableAttrDictionary());
  attention.getResult().replaceAllUsesWith(shared.getResult());
  attention.erase();
  for (AttentionGradientOp gradient : gradients) {
    builder.setInsertionPoint(gradient);
    TensorBuilder t(gradient.getLoc(), builder);
    Value mask = gradient.getMask(), logSums = shared.getLogSums();
    if (liftMasked && hasScoresOfNoKey(gradient)) {
      mask = lift(mask, t);
      logSums = lift(logSums, t);
    }
    auto made = LocalAttentionGradientOp::create(
        builder, gradient.getLoc(), gradient.getResultTypes(), gradient.getQ(),
        gradient.getK(), gradient.getV(), gradient.getResult(),
        gradient.getGradient(), mask, logSums, gradient.getScaleAttr(),
        gradient.getCausalAttr(), gradient.getWindowAttr(),
        gradient.getEmptyRowsZeroAttr());
    made->setDiscardableAttrs(gradient->getDiscardableAttrDictionary());
    gradient.replaceAllUsesWith(made);
    gradient.erase();
  }
}

namespace {

struct ComposeAttentionPass
    : codegen::impl::ComposeAttentionBase<ComposeAttentionPass> {
  using ComposeAttentionBase::ComposeAttentionBase;

  void runOnOperation() override {
    forEachStage(getOperation(), [&](LocalStageOp stage) {
      Block &block = stage.getBlock();
      WrittenMasks written;
      for (Operation &op : llvm::make_early_inc_range(block))
        if (auto attention = dyn_cast<AttentionOp>(op))
          writeMask(attention, isLeft(attention), written);
        else if (auto gradient = dyn_cast<AttentionGradientOp>(op))
          writeMask(gradient, isLeft(gradient), written);
      SmallVector<AttentionOp> all(block.getOps<AttentionOp>());
      // Asked of all before any is changed.
      llvm::DenseMap<AttentionOp, SmallVector<AttentionGradientOp>> sharing;
      SmallVector<AttentionGradientOp> others;
      for (auto gradient : block.getOps<AttentionGradientOp>()) {
        auto attention = gradient.getResult().getDefiningOp<AttentionOp>();
        bool isGiven = attention && isLeft(attention) && isLeft(gradient) &&
                       isGradientOf(gradient, attention);
        (isGiven ? sharing[attention] : others).push_back(gradient);
      }
      for (AttentionOp op : all)
        give(op, sharing.lookup(op));
      for (AttentionGradientOp op : others)
        give(op);
    });
  }

  bool isLeft(Operation *op) {
    ComposeAttentionOptions options;
    options.cudnn = cudnn;
    options.largestHead = largestHead;
    options.largestGradientHead = largestGradientHead;
    return isLeftToCudnn(op, options);
  }
  /// `gradients`: that are given the sums.
  void give(AttentionOp op, ArrayRef<AttentionGradientOp> gradients) {
    if (!isLeft(op)) {
      compose(op);
      return;
    }
    CudnnMask mask = leave(op);
    for (AttentionGradientOp gradient : gradients)
      leave(gradient, mask);
    if (!gradients.empty())
      shareSums(op, gradients, liftMasked);
  }
  void give(AttentionGradientOp op) {
    if (!isLeft(op)) {
      compose(op);
      return;
    }
    leave(op);
    // Sums are computed again, with this mask.
    if (!liftMasked || !hasScoresOfNoKey(op))
      return;
    OpBuilder builder(op);
    TensorBuilder t(op.getLoc(), builder);
    op.getMaskMutable().assign(lift(op.getMask(), t));
  }
  /// Returns the mask, which is made where none is given.
  template <typename Op>
  static CudnnMask leave(Op op, std::optional<CudnnMask> mask = {}) {
    Type type = productTypeOf(op);
    compute(op, type);
    if (!mask)
      mask = makeMask(op, type);
    setMask(op, *mask);
    return *mask;
  }

  static void compose(AttentionOp op) {
    OpBuilder builder(op);
    TensorBuilder t(op.getLoc(), builder);
    AttentionParts parts(AttentionValues(op), t, productTypeOf(op));
    Value mixed =
        parts.dot(parts.probabilities(parts.scaledQueries()), op.getV(), 4, 2);
    op.getResult().replaceAllUsesWith(
        t.cast(t.reshape(mixed, shapeOf(op.getResult())),
               elementType(op.getResult())));
    op.erase();
  }

  static void compose(AttentionGradientOp op) {
    OpBuilder builder(op);
    TensorBuilder t(op.getLoc(), builder);
    AttentionGradientParts parts(AttentionValues(op), op.getResult(),
                                 op.getGradient(), t, productTypeOf(op));
    op.getDv().replaceAllUsesWith(parts.ofV());
    op.getDq().replaceAllUsesWith(parts.ofQ());
    op.getDk().replaceAllUsesWith(parts.ofK());
    op.erase();
  }
};

} // namespace
