//===- Elementwise.cpp - Gradients of element-wise ops --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a function has a corner, its gradient there is PyTorch's.
//
//===----------------------------------------------------------------------===//

#include "../GradientRules.h"

using namespace mlir;
using namespace ax;

static LogicalResult unary(UnaryOp op, GradientBuilder &g) {
  g.give(op.getOperandMutable(), [&] {
    return unaryGradient(g, op.getKind(), op.getOperand(), op.getResult(),
                         g.ofResult());
  });
  return success();
}

/// x^y: y x^(y - 1), and x^y log x; 0 where y is, and where x is and y not
/// negative.
static void power(BinaryOp op, GradientBuilder &g) {
  Value x = op.getLhs(), y = op.getRhs(), dy = g.ofResult();
  std::optional<double> known = splatNumber(y);
  g.giveSummed(op.getLhsMutable(), [&]() -> Value {
    if (known && *known == 0)
      return {};
    if (known && *known == 2)
      return g.mul(g.mul(dy, x), 2);
    Value slope = g.mul(y, g.binary(BinaryKind::pow, x, g.add(y, -1)));
    if (!known)
      slope = g.select(g.compare(CompareKind::eq, y, 0), g.number(y, 0), slope);
    return g.mul(dy, slope);
  });
  g.giveSummed(op.getRhsMutable(), [&] {
    Value slope = g.mul(op.getResult(), g.unary(UnaryKind::log, x));
    Value isZero =
        g.binary(BinaryKind::logical_and, g.compare(CompareKind::eq, x, 0),
                 g.compare(CompareKind::ge, y, 0));
    return g.mul(dy, g.select(isZero, g.number(x, 0), slope));
  });
}

/// The larger (smaller) one gets all, equal ones a half each.
static void extreme(BinaryOp op, GradientBuilder &g, CompareKind wins) {
  Value x = op.getLhs(), y = op.getRhs(), dy = g.ofResult();
  auto share = [&](Value mine, Value other) {
    Value half =
        g.select(g.compare(CompareKind::eq, mine, other), g.mul(dy, 0.5), 0);
    return g.select(g.compare(wins, mine, other), dy, half);
  };
  g.giveSummed(op.getLhsMutable(), [&] { return share(x, y); });
  g.giveSummed(op.getRhsMutable(), [&] { return share(y, x); });
}

/// x - y q for the whole number q of times that y goes into x.
static void remainder(BinaryOp op, GradientBuilder &g, UnaryKind rounding) {
  Value dy = g.ofResult();
  g.giveSummed(op.getLhsMutable(), [&] { return dy; });
  g.giveSummed(op.getRhsMutable(), [&] {
    Value times = g.unary(rounding, g.div(op.getLhs(), op.getRhs()));
    return g.neg(g.mul(dy, times));
  });
}

static LogicalResult binary(BinaryOp op, GradientBuilder &g) {
  Value x = op.getLhs(), y = op.getRhs(), dy = g.ofResult();
  OpOperand &lhs = op.getLhsMutable(), &rhs = op.getRhsMutable();
  switch (op.getKind()) {
  case BinaryKind::add:
    g.giveSummed(lhs, [&] { return dy; });
    g.giveSummed(rhs, [&] { return dy; });
    return success();
  case BinaryKind::sub:
    g.giveSummed(lhs, [&] { return dy; });
    g.giveSummed(rhs, [&] { return g.neg(dy); });
    return success();
  case BinaryKind::mul:
    g.giveSummed(lhs, [&] { return g.mul(dy, y); });
    g.giveSummed(rhs, [&] { return g.mul(dy, x); });
    return success();
  case BinaryKind::div:
    g.giveSummed(lhs, [&] { return g.div(dy, y); });
    g.giveSummed(rhs,
                 [&] { return g.neg(g.div(g.mul(dy, op.getResult()), y)); });
    return success();
  case BinaryKind::pow:
    power(op, g);
    return success();
  case BinaryKind::max:
    extreme(op, g, CompareKind::gt);
    return success();
  case BinaryKind::min:
    extreme(op, g, CompareKind::lt);
    return success();
  case BinaryKind::floor_mod:
    remainder(op, g, UnaryKind::floor);
    return success();
  case BinaryKind::trunc_mod:
    remainder(op, g, UnaryKind::trunc);
    return success();
  case BinaryKind::logical_and:
  case BinaryKind::logical_or:
  case BinaryKind::logical_xor:
  case BinaryKind::bit_and:
  case BinaryKind::bit_or:
  case BinaryKind::bit_xor:
  case BinaryKind::shl:
  case BinaryKind::shr:
    return g.fail("is of bits and has no gradient");
  }
  llvm_unreachable("binary kind");
}

static LogicalResult select(SelectOp op, GradientBuilder &g) {
  Value condition = op.getCondition(), dy = g.ofResult();
  g.giveSummed(op.getOnTrueMutable(),
               [&] { return g.select(condition, dy, 0); });
  g.giveSummed(op.getOnFalseMutable(),
               [&] { return g.select(condition, g.number(dy, 0), dy); });
  return success();
}

/// What was rounded to eight bits has the gradient of what it stands for, which
/// those bits would lose: it is f32.
static LogicalResult cast(CastOp op, GradientBuilder &g) {
  Type type = elementType(op.getOperand());
  if (isFloat8(type))
    type = g.b.getF32Type();
  g.give(op.getOperandMutable(), [&] { return g.cast(g.ofResult(), type); });
  return success();
}

static LogicalResult dropout(DropoutOp op, GradientBuilder &g) {
  g.give(op.getOperandMutable(), [&]() -> Value {
    return DropoutOp::create(g.b, g.ofResult(), op.getSeed(), op.getStep(),
                             op.getRate(), op.getId());
  });
  return success();
}

void ax::attachElementwiseGradients(MLIRContext &context) {
  attachGradient<UnaryOp, unary>(context);
  attachGradient<BinaryOp, binary>(context);
  attachGradient<SelectOp, select>(context);
  attachGradient<CastOp, ::cast>(context);
  attachGradient<DropoutOp, dropout>(context);
}
