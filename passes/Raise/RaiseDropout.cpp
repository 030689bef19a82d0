//===- RaiseDropout.cpp - Dropout of branches from primitives -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stochastic depth: Huang et al., Deep networks with stochastic depth,
// arXiv 1603.09382.
//
//===----------------------------------------------------------------------===//

#include "ax/Dialect/ProgramNames.h"
#include "ax/Passes/Passes.h"

#include "../KnownValue.h"
#include "../Match.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <cmath>

namespace ax {
#define GEN_PASS_DEF_RAISEDROPOUT
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;

namespace {

/// The operation of a value that nothing else uses.
template <typename OpTy>
OpTy onlyUseOf(Value value) {
  return value.hasOneUse() ? value.getDefiningOp<OpTy>() : OpTy();
}

std::optional<double> numberOf(Value value) {
  if (std::optional<double> number = splatNumber(value))
    return number;
  std::optional<double> known = knownSplat(value);
  if (known)
    noteDecided(value);
  return known;
}

/// Returns the op of random numbers in [0, 1), also of a narrow type.
UniformOp uniformOf(Value value) {
  if (auto least = onlyUseOf<BinaryOp>(value);
      least && least.getKind() == BinaryKind::min)
    value = least.getLhs();
  if (auto cast = onlyUseOf<CastOp>(value))
    value = cast.getOperand();
  return onlyUseOf<UniformOp>(value);
}

/// Ones where a random number is on the right side of another, else zeros.
struct Mask {
  UniformOp uniform;
  /// The part that is ones.
  double kept;
};

std::optional<Mask> matchCompared(Value value) {
  auto op = onlyUseOf<CompareOp>(value);
  if (!op)
    return std::nullopt;
  bool isLess =
      op.getKind() == CompareKind::lt || op.getKind() == CompareKind::le;
  if (!isLess && op.getKind() != CompareKind::gt &&
      op.getKind() != CompareKind::ge)
    return std::nullopt;
  Value random = op.getLhs(), other = op.getRhs();
  if (!uniformOf(random)) {
    std::swap(random, other);
    isLess = !isLess;
  }
  UniformOp uniform = uniformOf(random);
  std::optional<double> number = uniform ? numberOf(other) : std::nullopt;
  if (!number)
    return std::nullopt;
  return Mask{uniform, isLess ? *number : 1 - *number};
}

std::optional<Mask> matchMask(Value value) {
  if (auto cast = value.getDefiningOp<CastOp>())
    return matchCompared(cast.getOperand());
  if (auto select = value.getDefiningOp<SelectOp>())
    return isExactSplat(select.getOnTrue(), 1) &&
                   isExactSplat(select.getOnFalse(), 0)
               ? matchCompared(select.getCondition())
               : std::nullopt;
  // The integer part of a random number and the part that is kept.
  UnaryOp floor = unaryOf(value, UnaryKind::floor);
  auto sum = floor ? onlyUseOf<BinaryOp>(floor.getOperand()) : BinaryOp();
  if (!sum || sum.getKind() != BinaryKind::add)
    return std::nullopt;
  for (auto [random, other] : {std::pair(sum.getLhs(), sum.getRhs()),
                               std::pair(sum.getRhs(), sum.getLhs())})
    if (UniformOp uniform = uniformOf(random))
      if (std::optional<double> number = numberOf(other))
        return Mask{uniform, *number};
  return std::nullopt;
}

/// What `value` is divided by `kept`; null when it is not.
Value dividedBy(Value value, double kept) {
  std::optional<WithNumber> scaled = matchScaled(value);
  bool divides = scaled && std::abs(kept * scaled->number - 1) < 1e-2;
  return divides ? scaled->value : Value();
}

/// The mask divided by what it keeps, or a product with it of which the other
/// factor, or the whole, is.
struct RaiseScaledMask : RewritePattern {
  RaiseScaledMask(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const final {
    if (op->getNumResults() != 1 || !op->hasOneUse())
      return failure();
    std::optional<Mask> mask = matchMask(op->getResult(0));
    if (!mask || !(mask->kept > 0) || !(1 - mask->kept < 1) || mask->kept > 1 ||
        shapeOf(mask->uniform.getResult()) != shapeOf(op->getResult(0)))
      return failure();
    // Found before anything is made.
    Operation *user = *op->user_begin();
    Value scaled = user->getResult(0), undivided;
    auto product = dyn_cast<BinaryOp>(user);
    if (dividedBy(scaled, mask->kept) != op->getResult(0)) {
      if (!product || product.getKind() != BinaryKind::mul)
        return failure();
      bool isLeft = product.getLhs() == op->getResult(0);
      Value other = isLeft ? product.getRhs() : product.getLhs();
      undivided = dividedBy(other, mask->kept);
      if (!undivided) {
        if (!scaled.hasOneUse())
          return failure();
        scaled = (*scaled.user_begin())->getResult(0);
        if (dividedBy(scaled, mask->kept) != product.getResult())
          return failure();
        undivided = other;
      }
    }
    Location loc = op->getLoc();
    rewriter.setInsertionPoint(user);
    Value kept = createSplat(rewriter, loc, tensorType(op->getResult(0)), 1);
    auto program = op->getParentOfType<ProgramOp>();
    if (!program || !isEvaluationMode(program.getSymName()))
      kept = DropoutOp::create(rewriter, loc, kept, mask->uniform.getSeed(),
                               mask->uniform.getStep(), APFloat(1 - mask->kept),
                               mask->uniform.getId());
    if (undivided)
      kept = BinaryOp::create(rewriter, loc, BinaryKind::mul, undivided, kept);
    rewriter.replaceOp(scaled.getDefiningOp(), kept);
    return success();
  }
};

struct RaiseDropout : ax::impl::RaiseDropoutBase<RaiseDropout> {
  using RaiseDropoutBase::RaiseDropoutBase;

  void runOnOperation() final {
    RewritePatternSet patterns(&getContext());
    patterns.add<RaiseScaledMask>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
