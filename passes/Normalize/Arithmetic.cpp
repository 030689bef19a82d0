//===- Arithmetic.cpp - Neutral elements, powers, order ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../Match.h"
#include "Patterns.h"

#include "ax/Dialect/FunctionFacts.h"

#include <cmath>

using namespace mlir;
using namespace ax;

namespace {

/// Returns 0 for what is computed, 1 for a weight, 2 for a constant.
int fixedness(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (isa<ConstantOp>(op))
      return 2;
    if (isa<LoadOp>(op))
      return 1;
    if (!isa<ReshapeOp, TransposeOp, BroadcastOp, CastOp>(op))
      return 0;
    value = op->getOperand(0);
  }
  return 0;
}

struct FixedToTheRight : OpRewritePattern<BinaryOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BinaryOp op,
                                PatternRewriter &rewriter) const final {
    if (!factsOf(op.getKind()).isCommutative ||
        fixedness(op.getLhs()) <= fixedness(op.getRhs()))
      return failure();
    rewriter.modifyOpInPlace(op, [&] {
      Value lhs = op.getLhs();
      op.getLhsMutable().assign(op.getRhs());
      op.getRhsMutable().assign(lhs);
    });
    return success();
  }
};

/// x + 0, x - 0, x * 1, x / 1, x ^ 1, x && true, x || false.
struct DropNeutral : OpRewritePattern<BinaryOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BinaryOp op,
                                PatternRewriter &rewriter) const final {
    if (op.getLhs().getType() != op.getType())
      return failure();
    std::optional<double> neutral;
    switch (op.getKind()) {
    case BinaryKind::add:
    case BinaryKind::sub:
    case BinaryKind::logical_or:
    case BinaryKind::logical_xor:
    case BinaryKind::shl:
    case BinaryKind::shr:
      neutral = 0;
      break;
    case BinaryKind::mul:
    case BinaryKind::div:
    case BinaryKind::pow:
    case BinaryKind::logical_and:
      neutral = 1;
      break;
    default:
      return failure();
    }
    if (!isExactSplat(op.getRhs(), *neutral))
      return failure();
    rewriter.replaceOp(op, op.getLhs());
    return success();
  }
};

Value unary(PatternRewriter &rewriter, Location loc, UnaryKind kind,
            Value operand) {
  return UnaryOp::create(rewriter, loc, kind, operand);
}

/// x^2, x^3, x^0.5, x^-0.5, x^-1.
struct ExpandPower : OpRewritePattern<BinaryOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BinaryOp op,
                                PatternRewriter &rewriter) const final {
    Value x = op.getLhs();
    if (op.getKind() != BinaryKind::pow || x.getType() != op.getType())
      return failure();
    std::optional<double> exponent = splatNumber(op.getRhs());
    if (!exponent)
      return failure();
    Location loc = op.getLoc();
    bool isFloat = isa<FloatType>(elementType(op));
    Value result;
    if (*exponent == 2 || *exponent == 3) {
      result = BinaryOp::create(rewriter, loc, BinaryKind::mul, x, x);
      if (*exponent == 3)
        result = BinaryOp::create(rewriter, loc, BinaryKind::mul, result, x);
    } else if (isFloat && *exponent == 0.5) {
      result = unary(rewriter, loc, UnaryKind::sqrt, x);
    } else if (isFloat && *exponent == -0.5) {
      result = unary(rewriter, loc, UnaryKind::rsqrt, x);
    } else if (isFloat && *exponent == -1) {
      result = unary(rewriter, loc, UnaryKind::reciprocal, x);
    } else {
      return failure();
    }
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// x / 2^n is exactly x * 2^-n; 1 / x is reciprocal.
struct SimplifyDivision : OpRewritePattern<BinaryOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BinaryOp op,
                                PatternRewriter &rewriter) const final {
    if (op.getKind() != BinaryKind::div || !isa<FloatType>(elementType(op)))
      return failure();
    if (isExactSplat(op.getLhs(), 1) && op.getRhs().getType() == op.getType()) {
      rewriter.replaceOpWithNewOp<UnaryOp>(op, UnaryKind::reciprocal,
                                           op.getRhs());
      return success();
    }
    std::optional<double> divisor = splatNumber(op.getRhs());
    int exponent = 0;
    // Inverses of very large powers are subnormal in narrow types.
    if (!divisor || std::abs(std::frexp(*divisor, &exponent)) != 0.5 ||
        exponent < -10 || exponent > 12)
      return failure();
    Value inverse = createSplat(rewriter, op.getLoc(), tensorType(op.getRhs()),
                                1 / *divisor);
    rewriter.replaceOpWithNewOp<BinaryOp>(op, BinaryKind::mul, op.getLhs(),
                                          inverse);
    return success();
  }
};

/// reciprocal(sqrt(x)), neg(neg(x)), not(not(x)), relu(relu(x)).
struct MergeUnary : OpRewritePattern<UnaryOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(UnaryOp op,
                                PatternRewriter &rewriter) const final {
    auto inner = op.getOperand().getDefiningOp<UnaryOp>();
    if (!inner)
      return failure();
    UnaryKind outer = op.getKind();
    if (outer == UnaryKind::reciprocal && inner.getKind() == UnaryKind::sqrt) {
      rewriter.replaceOpWithNewOp<UnaryOp>(op, UnaryKind::rsqrt,
                                           inner.getOperand());
      return success();
    }
    if (outer != inner.getKind())
      return failure();
    const UnaryFacts &facts = factsOf(outer);
    if (facts.isOwnInverse || facts.isIdempotent) {
      rewriter.replaceOp(op, facts.isOwnInverse ? inner.getOperand()
                                                : op.getOperand());
      return success();
    }
    return failure();
  }
};

/// select with a known condition, with equal branches, or of a negation.
struct SimplifySelect : OpRewritePattern<SelectOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SelectOp op,
                                PatternRewriter &rewriter) const final {
    Value chosen;
    if (op.getOnTrue() == op.getOnFalse())
      chosen = op.getOnTrue();
    else if (std::optional<double> condition = splatNumber(op.getCondition()))
      chosen = *condition != 0 ? op.getOnTrue() : op.getOnFalse();
    if (chosen) {
      if (chosen.getType() != op.getType())
        chosen =
            BroadcastOp::create(rewriter, op.getLoc(), op.getType(), chosen);
      rewriter.replaceOp(op, chosen);
      return success();
    }
    if (UnaryOp negated = unaryOf(op.getCondition(), UnaryKind::logical_not)) {
      rewriter.replaceOpWithNewOp<SelectOp>(op, negated.getOperand(),
                                            op.getOnFalse(), op.getOnTrue());
      return success();
    }
    return failure();
  }
};

} // namespace

void ax::addArithmeticPatterns(RewritePatternSet &patterns) {
  patterns.add<FixedToTheRight, DropNeutral, ExpandPower, SimplifyDivision,
               MergeUnary, SimplifySelect>(patterns.getContext());
}
