//===- RaiseNorm.cpp - Layer and RMS norm from primitives -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Passes/Passes.h"

#include "../Match.h"
#include "MatchedNodes.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <cmath>

namespace ax {
#define GEN_PASS_DEF_RAISENORM
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;

namespace {

/// The last dimensions, from the result on.
std::optional<int64_t> trailingAxis(ArrayRef<int64_t> dims, int64_t rank) {
  if (dims.empty())
    return std::nullopt;
  for (auto [i, dim] : llvm::enumerate(dims))
    if (dim != rank - static_cast<int64_t>(dims.size() - i))
      return std::nullopt;
  return dims.front();
}

/// value = numerator / sqrt(radicand). `restored`: a reshape gives the root the
/// reduced dimensions back.
struct Normalized {
  Value numerator;
  Value radicand;
  ReshapeOp restored;
};

std::optional<Normalized> matchNormalized(BinaryOp op) {
  bool isQuotient = op.getKind() == BinaryKind::div;
  UnaryKind kind = isQuotient ? UnaryKind::sqrt : UnaryKind::rsqrt;
  auto matchRoot = [&](Value numerator,
                       Value root) -> std::optional<Normalized> {
    auto restored = root.getDefiningOp<ReshapeOp>();
    UnaryOp unary = unaryOf(restored ? restored.getOperand() : root, kind);
    if (!unary)
      return std::nullopt;
    return Normalized{numerator, unary.getOperand(), restored};
  };
  if (!isQuotient && op.getKind() != BinaryKind::mul)
    return std::nullopt;
  std::optional<Normalized> result = matchRoot(op.getLhs(), op.getRhs());
  return result || isQuotient ? result : matchRoot(op.getRhs(), op.getLhs());
}

/// y, when `value` is y - mean(y).
Value matchCentred(Value value, ArrayRef<int64_t> dims) {
  BinaryOp difference = binaryOf(value, BinaryKind::sub);
  if (!difference)
    return {};
  std::optional<Mean> mean = matchMean(difference.getRhs());
  bool fits = mean && mean->keepDims && mean->dims == dims &&
              mean->operand == difference.getLhs();
  return fits ? mean->operand : Value();
}

/// x / sqrt(mean(x^2) + epsilon), where x may be y - mean(y).
struct RaiseNormalized : OpRewritePattern<BinaryOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BinaryOp op,
                                PatternRewriter &rewriter) const final {
    if (!isa<FloatType>(elementType(op)))
      return failure();
    std::optional<Normalized> normalized = matchNormalized(op);
    if (!normalized || normalized->numerator.getType() != op.getType())
      return failure();
    double epsilon = 0;
    Value variance = normalized->radicand;
    if (std::optional<WithNumber> shifted = matchShifted(variance)) {
      variance = shifted->value;
      epsilon = shifted->number;
    }
    std::optional<Mean> mean = matchMean(variance);
    if (epsilon < 0 || !mean || mean->keepDims == bool(normalized->restored))
      return failure();
    Value x = normalized->numerator;
    if (normalized->restored &&
        shapeOf(normalized->restored) != ArrayRef<int64_t>(keptShape(*mean)))
      return failure();
    if (matchSquare(mean->operand) != x)
      return failure();
    std::optional<int64_t> axis =
        trailingAxis(mean->dims, static_cast<int64_t>(shapeOf(x).size()));
    if (!axis)
      return failure();

    Value centred = matchCentred(x, mean->dims);
    mergeMatched(op, centred ? centred : x);
    if (centred)
      rewriter.replaceOpWithNewOp<LayerNormOp>(op, centred, Value(), Value(),
                                               *axis, APFloat(epsilon));
    else
      rewriter.replaceOpWithNewOp<RMSNormOp>(op, x, Value(), Value(), *axis,
                                             APFloat(epsilon));
    return success();
  }
};

/// x r + (bias - mean(x) r) where r = scale / sqrt(variance + epsilon):
/// TensorFlow's way to write it.
struct RaiseScaledAndShifted : OpRewritePattern<BinaryOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BinaryOp op,
                                PatternRewriter &rewriter) const final {
    auto pair = matchCommutative(op, BinaryKind::add, [](Value value) {
      return bool(binaryOf(value, BinaryKind::mul));
    });
    BinaryOp offset =
        pair ? binaryOf(pair->second, BinaryKind::sub) : BinaryOp();
    BinaryOp scaled =
        offset ? binaryOf(pair->first, BinaryKind::mul) : BinaryOp();
    BinaryOp scaledMean =
        offset ? binaryOf(offset.getRhs(), BinaryKind::mul) : BinaryOp();
    if (!scaledMean)
      return failure();
    for (auto [x, factor] : {std::pair(scaled.getLhs(), scaled.getRhs()),
                             std::pair(scaled.getRhs(), scaled.getLhs())}) {
      if (x.getType() != op.getType())
        continue;
      Value meanValue = scaledMean.getLhs() == factor ? scaledMean.getRhs()
                                                      : scaledMean.getLhs();
      std::optional<Mean> mean = matchMean(meanValue);
      if ((scaledMean.getLhs() != factor && scaledMean.getRhs() != factor) ||
          !mean || mean->operand != x || !mean->keepDims)
        continue;
      if (succeeded(raise(op, x, *mean, factor, offset.getLhs(), rewriter)))
        return success();
    }
    return failure();
  }

  static LogicalResult raise(BinaryOp op, Value x, const Mean &mean,
                             Value factor, Value bias,
                             PatternRewriter &rewriter) {
    auto inverse = matchCommutative(factor, BinaryKind::mul, [](Value value) {
      return bool(unaryOf(value, UnaryKind::rsqrt));
    });
    std::optional<int64_t> axis =
        trailingAxis(mean.dims, static_cast<int64_t>(shapeOf(x).size()));
    if (!inverse || !axis)
      return failure();
    Value radicand = unaryOf(inverse->first, UnaryKind::rsqrt).getOperand();
    std::optional<WithNumber> shifted = matchShifted(radicand);
    std::optional<Mean> variance =
        matchMean(shifted ? shifted->value : radicand);
    Value centred = variance ? matchSquare(variance->operand) : Value();
    if (!centred || !variance->keepDims || variance->dims != mean.dims ||
        matchCentred(centred, mean.dims) != x)
      return failure();
    ArrayRef<int64_t> normed = shapeOf(x).drop_front(*axis);
    Location loc = op.getLoc();
    Value scale = weightOfShape(rewriter, loc, inverse->second, normed);
    Value shift = scale ? weightOfShape(rewriter, loc, bias, normed) : Value();
    if (!shift)
      return failure();
    mergeMatched(op, x);
    rewriter.replaceOpWithNewOp<LayerNormOp>(
        op, x, scale, shift, *axis, APFloat(shifted ? shifted->number : 0.0));
    return success();
  }
};

/// The scale, then the bias of a norm that has none yet. `Op` is the norm.
template <typename Op>
struct TakeAffine : OpRewritePattern<BinaryOp> {
  using OpRewritePattern<BinaryOp>::OpRewritePattern;
  LogicalResult matchAndRewrite(BinaryOp op,
                                PatternRewriter &rewriter) const final {
    auto isNorm = [](Value value) {
      auto norm = value.getDefiningOp<Op>();
      return norm && norm->hasOneUse();
    };
    bool isScale = op.getKind() == BinaryKind::mul;
    auto pair = matchCommutative(
        op, isScale ? BinaryKind::mul : BinaryKind::add, isNorm);
    if (!pair || pair->first.getType() != op.getType())
      return failure();
    auto norm = pair->first.template getDefiningOp<Op>();
    if (norm.getBias() || (isScale && norm.getScale()))
      return failure();
    ArrayRef<int64_t> normed = shapeOf(norm).drop_front(norm.getAxis());
    Value operand = weightOfShape(rewriter, op.getLoc(), pair->second, normed);
    if (!operand)
      return failure();
    auto result = Op::create(rewriter, mergeLocations(norm, op), norm.getX(),
                             isScale ? operand : Value(norm.getScale()),
                             isScale ? Value() : operand, norm.getAxisAttr(),
                             norm.getEpsilonAttr());
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// Norms compute in f32 by themselves: cast(norm(cast(x))) of a narrower x.
template <typename Op>
struct DropCasts : OpRewritePattern<CastOp> {
  using OpRewritePattern<CastOp>::OpRewritePattern;
  LogicalResult matchAndRewrite(CastOp op,
                                PatternRewriter &rewriter) const final {
    auto norm = op.getOperand().template getDefiningOp<Op>();
    auto widening =
        norm ? norm.getX().template getDefiningOp<CastOp>() : CastOp();
    if (!widening || !norm->hasOneUse() || norm.getScale() || norm.getBias() ||
        !elementType(norm).isF32() ||
        widening.getOperand().getType() != op.getType() ||
        !isa<Float16Type, BFloat16Type>(elementType(op)))
      return failure();
    rewriter.replaceOpWithNewOp<Op>(op, widening.getOperand(), Value(), Value(),
                                    norm.getAxisAttr(), norm.getEpsilonAttr());
    return success();
  }
};

struct RaiseNorm : ax::impl::RaiseNormBase<RaiseNorm> {
  using RaiseNormBase::RaiseNormBase;

  void runOnOperation() final {
    RewritePatternSet patterns(&getContext());
    patterns.add<RaiseNormalized, RaiseScaledAndShifted,
                 TakeAffine<LayerNormOp>, TakeAffine<RMSNormOp>,
                 DropCasts<LayerNormOp>, DropCasts<RMSNormOp>>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
