//===- RaiseActivation.cpp - Named functions from primitives ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Passes/Passes.h"

#include "../Match.h"
#include "MatchedNodes.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <array>
#include <cmath>

namespace ax {
#define GEN_PASS_DEF_RAISEACTIVATION
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;

namespace {

/// Coefficients of x^0 .. x^3.
using Polynomial = std::array<double, 4>;

/// Tells numbers of a model from those of a definition, as far as two of them
/// that are multiplied are rounded to the type of the model's elements.
class Closeness {
public:
  explicit Closeness(Type element)
      : tolerance(element.isBF16()  ? 5e-3
                  : element.isF16() ? 1.2e-3
                                    : 1e-5) {}

  bool operator()(double lhs, double rhs) const {
    return std::abs(lhs - rhs) <= tolerance * std::max(std::abs(rhs), 1e-3);
  }
  bool operator()(const Polynomial &lhs, const Polynomial &rhs) const {
    for (size_t i = 0; i < lhs.size(); ++i)
      if (!(*this)(lhs[i], rhs[i]))
        return false;
    return true;
  }

private:
  double tolerance;
};

std::optional<Polynomial> multiply(const Polynomial &lhs,
                                   const Polynomial &rhs) {
  Polynomial product = {};
  for (size_t i = 0; i < lhs.size(); ++i)
    for (size_t j = 0; j < rhs.size(); ++j) {
      if (lhs[i] == 0 || rhs[j] == 0)
        continue;
      if (i + j >= product.size())
        return std::nullopt;
      product[i + j] += lhs[i] * rhs[j];
    }
  return product;
}

/// `value` as a polynomial in `x`, at most cubic.
std::optional<Polynomial> polynomialIn(Value value, Value x, int depth = 8) {
  if (value == x)
    return Polynomial{0, 1, 0, 0};
  if (std::optional<double> number = splatNumber(value))
    return Polynomial{*number, 0, 0, 0};
  if (depth == 0)
    return std::nullopt;
  if (UnaryOp negated = unaryOf(value, UnaryKind::neg)) {
    std::optional<Polynomial> inner =
        polynomialIn(negated.getOperand(), x, depth - 1);
    return inner ? multiply(*inner, {-1, 0, 0, 0}) : std::nullopt;
  }
  auto op = value.getDefiningOp<BinaryOp>();
  if (!op)
    return std::nullopt;
  std::optional<Polynomial> lhs = polynomialIn(op.getLhs(), x, depth - 1);
  std::optional<Polynomial> rhs =
      lhs ? polynomialIn(op.getRhs(), x, depth - 1) : std::nullopt;
  if (!rhs)
    return std::nullopt;
  bool rhsIsNumber = (*rhs)[1] == 0 && (*rhs)[2] == 0 && (*rhs)[3] == 0;
  switch (op.getKind()) {
  case BinaryKind::add:
  case BinaryKind::sub: {
    double sign = op.getKind() == BinaryKind::add ? 1 : -1;
    for (size_t i = 0; i < lhs->size(); ++i)
      (*lhs)[i] += sign * (*rhs)[i];
    return lhs;
  }
  case BinaryKind::mul:
    return multiply(*lhs, *rhs);
  case BinaryKind::div:
    if (!rhsIsNumber || (*rhs)[0] == 0)
      return std::nullopt;
    return multiply(*lhs, {1 / (*rhs)[0], 0, 0, 0});
  case BinaryKind::pow: {
    double exponent = (*rhs)[0];
    if (!rhsIsNumber || exponent != std::trunc(exponent) || exponent < 1 ||
        exponent > 3)
      return std::nullopt;
    std::optional<Polynomial> power = lhs;
    for (int i = 1; power && i < exponent; ++i)
      power = multiply(*power, *lhs);
    return power;
  }
  default:
    return std::nullopt;
  }
}

/// A product as its factors and the numbers among them.
struct Product {
  SmallVector<Value> factors;
  double number = 1;
};

void collectFactors(Value value, ArrayRef<Value> stops, Product &product,
                    int depth = 5) {
  if (std::optional<double> number = splatNumber(value)) {
    product.number *= *number;
    return;
  }
  if (depth > 0 && !llvm::is_contained(stops, value)) {
    if (std::optional<WithNumber> scaled = matchScaled(value)) {
      product.number *= scaled->number;
      return collectFactors(scaled->value, stops, product, depth - 1);
    }
    if (BinaryOp mul = binaryOf(value, BinaryKind::mul)) {
      collectFactors(mul.getLhs(), stops, product, depth - 1);
      return collectFactors(mul.getRhs(), stops, product, depth - 1);
    }
  }
  product.factors.push_back(value);
}

/// Every value inside the product, itself included.
void collectNodes(Value value, SmallVectorImpl<Value> &nodes, int depth = 5) {
  nodes.push_back(value);
  if (depth == 0)
    return;
  if (std::optional<WithNumber> scaled = matchScaled(value))
    return collectNodes(scaled->value, nodes, depth - 1);
  if (BinaryOp mul = binaryOf(value, BinaryKind::mul)) {
    collectNodes(mul.getLhs(), nodes, depth - 1);
    collectNodes(mul.getRhs(), nodes, depth - 1);
  }
}

/// offset + factor * function(...).
struct Gate {
  UnaryOp function;
  double offset = 0;
  double factor = 1;
};

std::optional<Gate> matchGate(Value value) {
  Gate gate;
  for (int depth = 0; depth < 4; ++depth) {
    if (auto op = value.getDefiningOp<UnaryOp>()) {
      UnaryKind kind = op.getKind();
      if (kind != UnaryKind::erf && kind != UnaryKind::tanh &&
          kind != UnaryKind::sigmoid)
        return std::nullopt;
      gate.function = op;
      return gate;
    }
    if (std::optional<WithNumber> shifted = matchShifted(value)) {
      gate.offset += gate.factor * shifted->number;
      value = shifted->value;
    } else if (std::optional<WithNumber> scaled = matchScaled(value)) {
      gate.factor *= scaled->number;
      value = scaled->value;
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

/// What x (offset + factor f(p(x))) is.
std::optional<UnaryKind> nameGated(Gate gate, double number,
                                   const Polynomial &inner) {
  Closeness isClose(elementType(gate.function.getResult()));
  double offset = number * gate.offset, factor = number * gate.factor;
  const double rootHalf = std::sqrt(0.5);
  const double rootTwoByPi = std::sqrt(2 / std::acos(-1.0));
  switch (gate.function.getKind()) {
  case UnaryKind::erf:
    if (isClose(offset, 0.5) && isClose(factor, 0.5) &&
        isClose(inner, Polynomial{0, rootHalf, 0, 0}))
      return UnaryKind::gelu;
    return std::nullopt;
  case UnaryKind::tanh:
    if (!isClose(offset, 0.5) || !isClose(factor, 0.5))
      return std::nullopt;
    if (isClose(inner, Polynomial{0, rootTwoByPi, 0, 0.044715 * rootTwoByPi}))
      return UnaryKind::gelu_tanh;
    if (isClose(inner, Polynomial{0, 0.5, 0, 0}))
      return UnaryKind::silu;
    return std::nullopt;
  case UnaryKind::sigmoid:
    if (offset == 0 && factor == 1 && isClose(inner, Polynomial{0, 1, 0, 0}))
      return UnaryKind::silu;
    return std::nullopt;
  default:
    return std::nullopt;
  }
}

/// x (a + b f(p(x))) in any association.
struct RaiseGated : OpRewritePattern<BinaryOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BinaryOp op,
                                PatternRewriter &rewriter) const final {
    if (op.getKind() != BinaryKind::mul && op.getKind() != BinaryKind::div)
      return failure();
    Value root = op;
    SmallVector<Value> nodes;
    collectNodes(root, nodes);
    for (Value node : nodes) {
      std::optional<Gate> gate = matchGate(node);
      if (!gate || node == root)
        continue;
      for (Value x : nodes) {
        if (x == root || x == node || x.getType() != root.getType())
          continue;
        Product product;
        collectFactors(root, {node, x}, product);
        if (product.factors.size() != 2 ||
            !llvm::is_contained(product.factors, node) ||
            !llvm::is_contained(product.factors, x))
          continue;
        std::optional<Polynomial> inner =
            polynomialIn(gate->function.getOperand(), x);
        if (!inner)
          continue;
        if (auto kind = nameGated(*gate, product.number, *inner)) {
          mergeMatched(op, x);
          rewriter.replaceOpWithNewOp<UnaryOp>(op, *kind, x);
          return success();
        }
      }
    }
    return failure();
  }
};

/// Raises 1 / (1 + exp(-x)), and x over the same.
struct RaiseSigmoid : RewritePattern {
  RaiseSigmoid(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  static Value matchDenominator(Value value) {
    std::optional<WithNumber> shifted = matchShifted(value);
    if (!shifted || shifted->number != 1)
      return {};
    UnaryOp exp = unaryOf(shifted->value, UnaryKind::exp);
    UnaryOp neg = exp ? unaryOf(exp.getOperand(), UnaryKind::neg) : UnaryOp();
    return neg ? neg.getOperand() : Value();
  }

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const final {
    if (op->getNumResults() != 1)
      return failure();
    Value value = op->getResult(0);
    if (UnaryOp inverse = unaryOf(value, UnaryKind::reciprocal)) {
      Value x = matchDenominator(inverse.getOperand());
      if (!x)
        return failure();
      mergeMatched(op, x);
      rewriter.replaceOpWithNewOp<UnaryOp>(op, UnaryKind::sigmoid, x);
      return success();
    }
    BinaryOp quotient = binaryOf(value, BinaryKind::div);
    Value x = quotient ? matchDenominator(quotient.getRhs()) : Value();
    if (!x || x.getType() != value.getType())
      return failure();
    bool isOne = isExactSplat(quotient.getLhs(), 1);
    if (!isOne && quotient.getLhs() != x)
      return failure();
    mergeMatched(op, x);
    rewriter.replaceOpWithNewOp<UnaryOp>(
        op, isOne ? UnaryKind::sigmoid : UnaryKind::silu, x);
    return success();
  }
};

/// log(1 + exp(x)), log1p(exp(x)); log(softmax(x)).
struct RaiseLogarithm : OpRewritePattern<UnaryOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(UnaryOp op,
                                PatternRewriter &rewriter) const final {
    Value operand = op.getOperand();
    Value exponential;
    if (op.getKind() == UnaryKind::log1p) {
      exponential = operand;
    } else if (op.getKind() == UnaryKind::log) {
      auto softmax = operand.getDefiningOp<SoftmaxOp>();
      if (softmax && !softmax.getLog() && softmax->hasOneUse()) {
        mergeMatched(op, softmax.getOperand());
        rewriter.replaceOpWithNewOp<SoftmaxOp>(op, softmax.getOperand(),
                                               softmax.getDim(), true);
        return success();
      }
      std::optional<WithNumber> shifted = matchShifted(operand);
      if (shifted && shifted->number == 1)
        exponential = shifted->value;
    }
    UnaryOp exp =
        exponential ? unaryOf(exponential, UnaryKind::exp) : UnaryOp();
    if (!exp)
      return failure();
    mergeMatched(op, exp.getOperand());
    rewriter.replaceOpWithNewOp<UnaryOp>(op, UnaryKind::softplus,
                                         exp.getOperand());
    return success();
  }
};

/// exp(x - max(x)) over its sum.
struct RaiseSoftmax : OpRewritePattern<BinaryOp> {
  using OpRewritePattern::OpRewritePattern;

  static ReduceOp matchReduce(Value value, ReduceOpKind kind) {
    auto op = value.getDefiningOp<ReduceOp>();
    bool fits = op && op.getKind() == kind && op.getKeepDims() &&
                op.getDims().size() == 1;
    return fits ? op : ReduceOp();
  }

  LogicalResult matchAndRewrite(BinaryOp op,
                                PatternRewriter &rewriter) const final {
    Value denominator;
    if (op.getKind() == BinaryKind::div)
      denominator = op.getRhs();
    else if (op.getKind() == BinaryKind::mul)
      if (UnaryOp inverse = unaryOf(op.getRhs(), UnaryKind::reciprocal))
        denominator = inverse.getOperand();
    if (!denominator)
      return failure();
    ReduceOp sum = matchReduce(denominator, ReduceOpKind::sum);
    UnaryOp exp = unaryOf(op.getLhs(), UnaryKind::exp);
    if (!sum || !exp || sum.getOperand() != exp.getResult())
      return failure();
    BinaryOp centred = binaryOf(exp.getOperand(), BinaryKind::sub);
    if (!centred)
      return failure();
    ReduceOp max = matchReduce(centred.getRhs(), ReduceOpKind::max);
    if (!max || max.getOperand() != centred.getLhs() ||
        max.getDims() != sum.getDims())
      return failure();
    mergeMatched(op, centred.getLhs());
    rewriter.replaceOpWithNewOp<SoftmaxOp>(op, centred.getLhs(),
                                           sum.getDims()[0], false);
    return success();
  }
};

struct RaiseActivation : ax::impl::RaiseActivationBase<RaiseActivation> {
  using RaiseActivationBase::RaiseActivationBase;

  void runOnOperation() final {
    RewritePatternSet patterns(&getContext());
    patterns.add<RaiseGated, RaiseSigmoid, RaiseLogarithm, RaiseSoftmax>(
        &getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
