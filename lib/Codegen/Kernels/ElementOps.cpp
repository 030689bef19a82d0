//===- ElementOps.cpp - Element-wise operations on scalars ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ElementOps.h"
#include "Float8Ops.h"
#include "ScalarMath.h"
#include "UnaryFunctions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;

namespace ax::codegen {
namespace {

/// Builds scalar operations of one ax element type.
struct Ops {
  Ops(OpBuilder &b, Type type)
      : b(b), loc(b.getUnknownLoc()), axType(type), type(scalarType(type)),
        isFloat(isa<FloatType>(type)),
        isUnsigned(type.isUnsignedInteger() || type.isInteger(1)) {}

  template <typename Op>
  Value make(Value x, Value y) {
    return Op::create(b, loc, x, y);
  }
  template <typename FloatOp, typename IntOp>
  Value either(Value x, Value y) {
    return isFloat ? make<FloatOp>(x, y) : make<IntOp>(x, y);
  }
  template <typename SignedOp, typename UnsignedOp>
  Value bySign(Value x, Value y) {
    return isUnsigned ? make<UnsignedOp>(x, y) : make<SignedOp>(x, y);
  }
  Value num(double v) {
    return arith::ConstantOp::create(b, loc, FloatAttr::get(type, v));
  }
  Value integer(int64_t v) {
    return arith::ConstantOp::create(b, loc, IntegerAttr::get(type, v));
  }
  Value zero() {
    return arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  }
  Value one() { return isFloat ? num(1.0) : integer(1); }
  Value select(Value c, Value x, Value y) {
    return arith::SelectOp::create(b, loc, c, x, y);
  }
  Value cmp(arith::CmpFPredicate p, Value x, Value y) {
    return arith::CmpFOp::create(b, loc, p, x, y);
  }
  Value cmp(arith::CmpIPredicate p, Value x, Value y) {
    return arith::CmpIOp::create(b, loc, p, x, y);
  }
  Value less(Value x, Value y) {
    return isFloat ? cmp(arith::CmpFPredicate::OLT, x, y)
                   : cmp(isUnsigned ? arith::CmpIPredicate::ult
                                    : arith::CmpIPredicate::slt,
                         x, y);
  }
  Value isZero(Value x) {
    return isFloat ? cmp(arith::CmpFPredicate::OEQ, x, zero())
                   : cmp(arith::CmpIPredicate::eq, x, zero());
  }

  Value binary(BinaryKind kind, Value x, Value y);
  Value divide(Value x, Value y);
  Value remainder(Value x, Value y, bool floored);
  Value shift(Value x, Value y, bool left);
  Value integerPow(Value x, Value y);

  OpBuilder &b;
  Location loc;
  Type axType, type;
  bool isFloat, isUnsigned;
};

/// Truncates; by zero, or the least number by -1, gives a value rather than a
/// trap.
Value Ops::divide(Value x, Value y) {
  if (isFloat)
    return make<arith::DivFOp>(x, y);
  Value safe = select(isZero(y), one(), y);
  if (isUnsigned)
    return select(isZero(y), zero(), make<arith::DivUIOp>(x, safe));
  Value minusOne = cmp(arith::CmpIPredicate::eq, y, integer(-1));
  safe = select(minusOne, one(), safe);
  Value q = select(isZero(y), zero(), make<arith::DivSIOp>(x, safe));
  return select(minusOne, make<arith::SubIOp>(zero(), x), q);
}

Value Ops::remainder(Value x, Value y, bool floored) {
  if (isFloat) {
    Value r = make<arith::RemFOp>(x, y);
    if (!floored)
      return r;
    // The divisor's sign, also on a zero.
    Value wrong = make<arith::XOrIOp>(less(r, zero()), less(y, zero()));
    Value moved = select(wrong, make<arith::AddFOp>(r, y), r);
    return select(isZero(r), math::CopySignOp::create(b, loc, r, y), moved);
  }
  Value safe = select(isZero(y), one(), y);
  if (isUnsigned)
    return select(isZero(y), zero(), make<arith::RemUIOp>(x, safe));
  safe = select(cmp(arith::CmpIPredicate::eq, y, integer(-1)), one(), safe);
  Value r = make<arith::RemSIOp>(x, safe);
  if (!floored)
    return r;
  Value wrong = make<arith::AndIOp>(
      cmp(arith::CmpIPredicate::ne, r, zero()),
      make<arith::XOrIOp>(less(r, zero()), less(y, zero())));
  return select(wrong, make<arith::AddIOp>(r, y), r);
}

/// Bits shifted out are gone, also when the distance is the width or more.
Value Ops::shift(Value x, Value y, bool left) {
  unsigned width = type.getIntOrFloatBitWidth();
  Value within = cmp(arith::CmpIPredicate::ult, y, integer(width));
  Value distance = select(within, y, zero());
  if (left)
    return select(within, make<arith::ShLIOp>(x, distance), zero());
  if (isUnsigned)
    return select(within, make<arith::ShRUIOp>(x, distance), zero());
  distance = select(within, y, integer(width - 1));
  return make<arith::ShRSIOp>(x, distance);
}

/// Squares repeatedly, and wraps; a negative exponent leaves 0 but for 1 and
/// -1.
Value Ops::integerPow(Value x, Value y) {
  Value power = one(), square = x, rest = y;
  Value negative = isUnsigned ? Value() : less(y, zero());
  for (unsigned bit = 0; bit < type.getIntOrFloatBitWidth(); ++bit) {
    Value odd =
        cmp(arith::CmpIPredicate::ne, make<arith::AndIOp>(rest, one()), zero());
    power = select(odd, make<arith::MulIOp>(power, square), power);
    square = make<arith::MulIOp>(square, square);
    rest = make<arith::ShRUIOp>(rest, one());
  }
  if (!negative)
    return power;
  Value odd =
      cmp(arith::CmpIPredicate::ne, make<arith::AndIOp>(y, one()), zero());
  Value isOne = cmp(arith::CmpIPredicate::eq, x, one());
  Value isMinusOne = cmp(arith::CmpIPredicate::eq, x, integer(-1));
  Value inverse = select(isMinusOne, select(odd, integer(-1), one()), zero());
  return select(negative, select(isOne, one(), inverse), power);
}

Value Ops::binary(BinaryKind kind, Value x, Value y) {
  switch (kind) {
  case BinaryKind::add:
    return either<arith::AddFOp, arith::AddIOp>(x, y);
  case BinaryKind::sub:
    return either<arith::SubFOp, arith::SubIOp>(x, y);
  case BinaryKind::mul:
    return either<arith::MulFOp, arith::MulIOp>(x, y);
  case BinaryKind::div:
    return divide(x, y);
  case BinaryKind::pow:
    return isFloat ? emitPow(b, x, y) : integerPow(x, y);
  case BinaryKind::max:
    return isFloat ? make<arith::MaximumFOp>(x, y)
                   : bySign<arith::MaxSIOp, arith::MaxUIOp>(x, y);
  case BinaryKind::min:
    return isFloat ? make<arith::MinimumFOp>(x, y)
                   : bySign<arith::MinSIOp, arith::MinUIOp>(x, y);
  case BinaryKind::floor_mod:
    return remainder(x, y, true);
  case BinaryKind::trunc_mod:
    return remainder(x, y, false);
  case BinaryKind::logical_and:
  case BinaryKind::bit_and:
    return make<arith::AndIOp>(x, y);
  case BinaryKind::logical_or:
  case BinaryKind::bit_or:
    return make<arith::OrIOp>(x, y);
  case BinaryKind::logical_xor:
  case BinaryKind::bit_xor:
    return make<arith::XOrIOp>(x, y);
  case BinaryKind::shl:
    return shift(x, y, true);
  case BinaryKind::shr:
    return shift(x, y, false);
  }
  llvm_unreachable("unknown BinaryKind");
}

/// A narrow float to f32.
Value widen(OpBuilder &b, ScalarUnit unit, Value x, Type type) {
  Location loc = b.getUnknownLoc();
  if (isFloat8(type))
    return widenFloat8(b, x, type);
  if (!type.isBF16() || unit == ScalarUnit::Gpu)
    return arith::ExtFOp::create(b, loc, b.getF32Type(), x);
  Ops i(b, b.getI32Type());
  Value half = arith::BitcastOp::create(b, loc, b.getI16Type(), x);
  Value bits = i.make<arith::ShLIOp>(
      arith::ExtUIOp::create(b, loc, b.getI32Type(), half), i.integer(16));
  return arith::BitcastOp::create(b, loc, b.getF32Type(), bits);
}

/// f32 to a narrow float, to nearest even.
Value narrow(OpBuilder &b, ScalarUnit unit, Value x, Type type) {
  Location loc = b.getUnknownLoc();
  if (isFloat8(type))
    return narrowToFloat8(b, x, type);
  if (!type.isBF16() || unit == ScalarUnit::Gpu)
    return arith::TruncFOp::create(b, loc, type, x);
  // Few processors have the instruction, and it loses subnormals.
  Ops f(b, b.getF32Type()), i(b, b.getI32Type());
  Value bits = arith::BitcastOp::create(b, loc, b.getI32Type(), x);
  Value high = i.make<arith::ShRUIOp>(bits, i.integer(16));
  Value last = i.make<arith::AndIOp>(high, i.integer(1));
  Value bias = i.make<arith::AddIOp>(last, i.integer(0x7fff));
  Value rounded =
      i.make<arith::ShRUIOp>(i.make<arith::AddIOp>(bits, bias), i.integer(16));
  Value quiet = i.make<arith::OrIOp>(high, i.integer(0x40));
  Value chosen =
      i.select(f.cmp(arith::CmpFPredicate::UNO, x, x), quiet, rounded);
  Value half = arith::TruncIOp::create(b, loc, b.getI16Type(), chosen);
  return arith::BitcastOp::create(b, loc, type, half);
}

} // namespace

bool isKernelType(Type type) {
  if (type.isF32() || type.isF64() || isNarrowFloat(type))
    return true;
  auto integer = dyn_cast<IntegerType>(type);
  return integer &&
         llvm::is_contained({1u, 8u, 16u, 32u, 64u}, integer.getWidth());
}

Type scalarType(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type))
    return IntegerType::get(type.getContext(), integer.getWidth());
  if (isFloat8(type))
    return IntegerType::get(type.getContext(), 8);
  return type;
}

Type storageType(Type type) {
  // LLVM 22 stores too much in masked stores of bf16 vectors.
  unsigned width = type.isInteger(1) ? 8 : type.isBF16() ? 16 : 0;
  return width ? IntegerType::get(type.getContext(), width) : scalarType(type);
}

int64_t storageBytes(Type type) {
  return storageType(type).getIntOrFloatBitWidth() / 8;
}

Value fromStorage(OpBuilder &b, Value stored, Type type) {
  if (type.isInteger(1))
    return arith::CmpIOp::create(b, b.getUnknownLoc(), arith::CmpIPredicate::ne,
                                 stored, emitZero(b, stored.getType()));
  if (type.isBF16())
    return arith::BitcastOp::create(b, b.getUnknownLoc(), type, stored);
  return stored;
}

Value toStorage(OpBuilder &b, Value x, Type type) {
  if (type.isInteger(1))
    return arith::ExtUIOp::create(b, b.getUnknownLoc(), storageType(type), x);
  if (type.isBF16())
    return arith::BitcastOp::create(b, b.getUnknownLoc(), storageType(type), x);
  return x;
}

Value emitUnary(OpBuilder &b, ScalarUnit unit, UnaryKind kind, Value x,
                Type type) {
  if (!isNarrowFloat(type))
    return emitUnaryFunction(b, unit, kind, x, type);
  Value y =
      emitUnaryFunction(b, unit, kind, widen(b, unit, x, type), b.getF32Type());
  return y.getType().isF32() ? narrow(b, unit, y, type) : y;
}

Value emitBinary(OpBuilder &b, ScalarUnit unit, BinaryKind kind, Value x,
                 Value y, Type type) {
  if (!isNarrowFloat(type))
    return Ops(b, type).binary(kind, x, y);
  return narrow(
      b, unit,
      Ops(b, b.getF32Type())
          .binary(kind, widen(b, unit, x, type), widen(b, unit, y, type)),
      type);
}

Value emitCompare(OpBuilder &b, ScalarUnit unit, CompareKind kind, Value x,
                  Value y, Type type) {
  if (isNarrowFloat(type))
    return emitCompare(b, unit, kind, widen(b, unit, x, type),
                       widen(b, unit, y, type), b.getF32Type());
  Ops ops(b, type);
  using F = arith::CmpFPredicate;
  using I = arith::CmpIPredicate;
  auto pick = [&](F f, I s, I u) {
    return ops.isFloat ? ops.cmp(f, x, y)
                       : ops.cmp(ops.isUnsigned ? u : s, x, y);
  };
  switch (kind) {
  case CompareKind::eq:
    return pick(F::OEQ, I::eq, I::eq);
  case CompareKind::ne:
    return pick(F::UNE, I::ne, I::ne);
  case CompareKind::lt:
    return pick(F::OLT, I::slt, I::ult);
  case CompareKind::le:
    return pick(F::OLE, I::sle, I::ule);
  case CompareKind::gt:
    return pick(F::OGT, I::sgt, I::ugt);
  case CompareKind::ge:
    return pick(F::OGE, I::sge, I::uge);
  }
  llvm_unreachable("unknown CompareKind");
}

/// Towards zero; out of range saturates, NaN gives 0 (plain conversion would
/// be undefined). Narrow and negative-to-unsigned results wrap.
static Value floatToInteger(OpBuilder &b, Value x, Type to) {
  Location loc = b.getUnknownLoc();
  Type result = scalarType(to);
  unsigned width = result.getIntOrFloatBitWidth();
  bool isUnsigned = to.isUnsignedInteger();
  // 32 bits suffice for what fits them, and vectorise better.
  unsigned wide = width == 64 || (isUnsigned && width == 32) ? 64 : 32;
  Ops f(b, x.getType()), i(b, b.getIntegerType(wide));
  double limit = std::ldexp(1.0, wide - 1);
  Value low = f.num(-limit), high = f.num(limit);
  auto within = [&](Value lo, Value hi) {
    Value inside =
        f.make<arith::AndIOp>(f.cmp(arith::CmpFPredicate::OGE, x, lo),
                              f.cmp(arith::CmpFPredicate::OLT, x, hi));
    return std::pair(inside, f.select(inside, x, f.zero()));
  };
  Value y = arith::FPToSIOp::create(b, loc, i.type, within(low, high).second);
  Value above = f.cmp(arith::CmpFPredicate::OGE, x, high);
  Value most = arith::ConstantOp::create(
      b, loc, IntegerAttr::get(i.type, APInt::getSignedMaxValue(wide)));
  if (isUnsigned && width == 64) {
    auto [inside, safe] = within(high, f.num(2 * limit));
    Value large = arith::FPToUIOp::create(b, loc, i.type, safe);
    most = i.select(inside, large, i.integer(-1));
  }
  y = i.select(above, most, y);
  Value least = arith::ConstantOp::create(
      b, loc, IntegerAttr::get(i.type, APInt::getSignedMinValue(wide)));
  y = i.select(f.cmp(arith::CmpFPredicate::OLT, x, low), least, y);
  return width < wide ? Value(arith::TruncIOp::create(b, loc, result, y)) : y;
}

Value emitCast(OpBuilder &b, ScalarUnit unit, Value x, Type from, Type to) {
  Location loc = b.getUnknownLoc();
  if (from == to)
    return x;
  // By way of f32, which has all of their numbers.
  if (isFloat8(from))
    return emitCast(b, unit, widenFloat8(b, x, from), b.getF32Type(), to);
  if (isFloat8(to))
    return narrowToFloat8(b, emitCast(b, unit, x, from, b.getF32Type()), to);
  Type source = scalarType(from), target = scalarType(to);
  Ops ops(b, from);
  if (to.isInteger(1)) {
    if (from.isInteger(1))
      return x;
    return ops.isFloat ? ops.cmp(arith::CmpFPredicate::UNE, x, ops.zero())
                       : ops.cmp(arith::CmpIPredicate::ne, x, ops.zero());
  }
  if (ops.isFloat && isa<FloatType>(target)) {
    if (source == target)
      return x;
    unsigned a = source.getIntOrFloatBitWidth();
    unsigned c = target.getIntOrFloatBitWidth();
    // f16 to bf16 and back goes through f32.
    if (a == c)
      return narrow(b, unit, widen(b, unit, x, source), target);
    if (a < c) {
      if (source.isBF16())
        x = widen(b, unit, x, source);
      return x.getType() == target
                 ? x
                 : Value(arith::ExtFOp::create(b, loc, target, x));
    }
    if (target.isBF16() && source.isF64())
      x = arith::TruncFOp::create(b, loc, b.getF32Type(), x);
    return target.isBF16() ? narrow(b, unit, x, target)
                           : Value(arith::TruncFOp::create(b, loc, target, x));
  }
  if (ops.isFloat)
    return floatToInteger(
        b, isNarrowFloat(source) ? widen(b, unit, x, source) : x, to);
  if (auto floatTarget = dyn_cast<FloatType>(target)) {
    // Narrow integers are exact in f32, from where rounding happens once. To
    // bf16 LLVM goes by way of f32, too, and calls a function that nobody links
    // in where processors have none.
    bool byFloat = source.getIntOrFloatBitWidth() <= 16 ||
                   (target.isBF16() && unit == ScalarUnit::Processor);
    Type wide = isNarrowFloat(target) && byFloat ? b.getF32Type() : target;
    Value y = ops.isUnsigned ? Value(arith::UIToFPOp::create(b, loc, wide, x))
                             : Value(arith::SIToFPOp::create(b, loc, wide, x));
    return wide == target ? y : narrow(b, unit, y, target);
  }
  unsigned a = source.getIntOrFloatBitWidth();
  unsigned c = target.getIntOrFloatBitWidth();
  if (a == c)
    return x;
  if (a > c)
    return arith::TruncIOp::create(b, loc, target, x);
  return ops.isUnsigned ? Value(arith::ExtUIOp::create(b, loc, target, x))
                        : Value(arith::ExtSIOp::create(b, loc, target, x));
}

Value emitCombine(OpBuilder &b, ReduceOpKind kind, Value acc, Value x,
                  Type type) {
  Location loc = b.getUnknownLoc();
  Ops ops(b, type);
  if (!ops.isFloat) {
    bool isBool = type.isInteger(1);
    switch (kind) {
    case ReduceOpKind::sum:
      return isBool ? ops.make<arith::OrIOp>(acc, x)
                    : ops.make<arith::AddIOp>(acc, x);
    case ReduceOpKind::prod:
      return isBool ? ops.make<arith::AndIOp>(acc, x)
                    : ops.make<arith::MulIOp>(acc, x);
    case ReduceOpKind::max:
      return ops.bySign<arith::MaxSIOp, arith::MaxUIOp>(acc, x);
    case ReduceOpKind::min:
      return ops.bySign<arith::MinSIOp, arith::MinUIOp>(acc, x);
    }
  }
  auto anyOrder =
      arith::FastMathFlags::reassoc | arith::FastMathFlags::contract;
  switch (kind) {
  case ReduceOpKind::sum:
    return arith::AddFOp::create(b, loc, acc, x, anyOrder);
  case ReduceOpKind::prod:
    return arith::MulFOp::create(b, loc, acc, x, anyOrder);
  case ReduceOpKind::max:
    return arith::MaximumFOp::create(b, loc, acc, x, arith::FastMathFlags::nsz);
  case ReduceOpKind::min:
    return arith::MinimumFOp::create(b, loc, acc, x, arith::FastMathFlags::nsz);
  }
  llvm_unreachable("unknown ReduceOpKind");
}

Value emitNeutral(OpBuilder &b, ReduceOpKind kind, Type type) {
  Ops ops(b, type);
  if (kind == ReduceOpKind::sum)
    return ops.zero();
  if (kind == ReduceOpKind::prod)
    return ops.one();
  bool isMax = kind == ReduceOpKind::max;
  if (ops.isFloat) {
    double inf = std::numeric_limits<double>::infinity();
    return ops.num(isMax ? -inf : inf);
  }
  unsigned width = ops.type.getIntOrFloatBitWidth();
  APInt value = ops.isUnsigned ? (isMax ? APInt::getMinValue(width)
                                        : APInt::getMaxValue(width))
                               : (isMax ? APInt::getSignedMinValue(width)
                                        : APInt::getSignedMaxValue(width));
  return arith::ConstantOp::create(b, ops.loc,
                                   IntegerAttr::get(ops.type, value));
}

Value emitZero(OpBuilder &b, Type type) { return Ops(b, type).zero(); }

Value emitConstant(OpBuilder &b, Attribute element, Type type) {
  Type scalar = scalarType(type);
  TypedAttr value;
  if (auto number = dyn_cast<FloatAttr>(element); number && isFloat8(type))
    value = IntegerAttr::get(scalar, number.getValue().bitcastToAPInt());
  else if (number)
    value = FloatAttr::get(scalar, number.getValue());
  else
    value = IntegerAttr::get(scalar, cast<IntegerAttr>(element).getValue());
  return arith::ConstantOp::create(b, b.getUnknownLoc(), value);
}

} // namespace ax::codegen
