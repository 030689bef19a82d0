//===- LibraryMath.cpp - The C library's functions, as code ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arguments are brought to where a few terms of a series suffice: exp and log
// by powers of two, sin and cos by quarter turns, atan by halving the angle.
// The others are made of these.
//
//===----------------------------------------------------------------------===//

#include "LibraryMath.h"

#include "FloatMath.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace ax::codegen {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
/// A number's high half, rounded, and what is left of it.
constexpr double ln2High = 0x1.62e42fefa39efp-1, ln2Low = 0x1.abc9e3b39803fp-56;
constexpr double quarterHigh = 0x1.921fb54442d18p+0,
                 quarterLow = 0x1.1a62633145c07p-54,
                 quarterLowest = -0x1.f1976b7ed8fbcp-110;

/// An f64 of a kernel, written as numbers are.
struct Real {
  FloatMath *m;
  Value value;

  Real of(Value v) const { return {m, v}; }
  Real of(double v) const { return of(m->num(v)); }
};
Real operator+(Real x, Real y) { return x.of(x.m->add(x.value, y.value)); }
Real operator-(Real x, Real y) { return x.of(x.m->sub(x.value, y.value)); }
Real operator*(Real x, Real y) { return x.of(x.m->mul(x.value, y.value)); }
Real operator/(Real x, Real y) { return x.of(x.m->div(x.value, y.value)); }
Real operator-(Real x) { return x.of(x.m->neg(x.value)); }
Real operator+(Real x, double y) { return x + x.of(y); }
Real operator-(Real x, double y) { return x - x.of(y); }
Real operator*(Real x, double y) { return x * x.of(y); }
Real operator/(double x, Real y) { return y.of(x) / y; }
Real operator-(double x, Real y) { return y.of(x) - y; }
Value operator<(Real x, double y) { return x.m->less(x.value, x.m->num(y)); }
Value operator<(double x, Real y) { return y.m->less(y.m->num(x), y.value); }
Value operator==(Real x, Real y) {
  return x.m->cmp(arith::CmpFPredicate::OEQ, x.value, y.value);
}
Value operator==(Real x, double y) { return x == x.of(y); }

Real fma(Real x, Real y, Real z) {
  return x.of(x.m->exactFma(x.value, y.value, z.value));
}
Real select(Value c, Real x, Real y) {
  return x.of(x.m->select(c, x.value, y.value));
}
Real select(Value c, Real x, double y) { return select(c, x, x.of(y)); }
Real abs(Real x) { return x.of(x.m->abs(x.value)); }
Real sqrt(Real x) { return x.of(x.m->sqrt(x.value)); }
Real copySign(Real x, Real sign) {
  return x.of(x.m->copySign(x.value, sign.value));
}
Real atLeast(Real x, double lo) { return x.of(x.m->atLeast(x.value, lo)); }
Real atMost(Real x, double hi) { return x.of(x.m->atMost(x.value, hi)); }
Real floor(Real x) {
  return x.of(math::FloorOp::create(x.m->b, x.m->loc, x.value));
}
Real trunc(Real x) {
  return x.of(math::TruncOp::create(x.m->b, x.m->loc, x.value));
}
Real roundEven(Real x) {
  return x.of(math::RoundEvenOp::create(x.m->b, x.m->loc, x.value));
}
/// Coefficients from the constant one up: `term` of 0 to count - 1.
template <typename Term>
Real series(Real x, int count, Term term) {
  SmallVector<double> coefs;
  for (int k = 0; k != count; ++k)
    coefs.push_back(term(k));
  return x.of(x.m->polynomial(x.value, coefs));
}

double factorial(int n) { return std::tgamma(n + 1.0); }
double alternating(int k) { return k % 2 ? -1.0 : 1.0; }

//===----------------------------------------------------------------------===//
// Numbers as bits
//===----------------------------------------------------------------------===//

/// i64 arithmetic on a number's bits.
struct Bits {
  FloatMath *m;
  Value value;

  template <typename Op>
  Bits op(Value other) const {
    return {m, Op::create(m->b, m->loc, value, other)};
  }
  Bits operator+(int64_t n) const { return op<arith::AddIOp>(m->bits(n)); }
  Bits operator-(Bits other) const { return op<arith::SubIOp>(other.value); }
  Bits operator>>(int64_t n) const { return op<arith::ShRSIOp>(m->bits(n)); }
  Bits operator<<(int64_t n) const { return op<arith::ShLIOp>(m->bits(n)); }
  Real asReal() const { return {m, m->fromBits(value)}; }
};

constexpr int mantissaBits = 52, bias = 1023;
/// Makes normal numbers of subnormal ones, and back.
constexpr double lift = 0x1p54;
constexpr int liftBits = 54;

Bits bitsOf(Real x) { return {x.m, x.m->toBits(x.value)}; }
/// -1023 <= n <= 1023; 0 for the least.
Real powerOfTwo(Bits n) { return ((n + bias) << mantissaBits).asReal(); }
/// x 2^n, where n is the sum of two such numbers.
Real scale(Real x, Bits n) {
  Bits half = n >> 1;
  return x * powerOfTwo(half) * powerOfTwo(n - half);
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

Real exp(Real x) {
  // Beyond, it is 0 or infinite.
  x = atMost(atLeast(x, -746.0), 710.0);
  // The sum's low bits are the integer.
  Real magic = x.of(0x1.8p52), shifted = x * 1.44269504088896340736 + magic;
  Real n = shifted - magic;
  Real r = fma(n, x.of(-ln2Low), fma(n, x.of(-ln2High), x));
  Real power = series(r, 14, [](int k) { return 1 / factorial(k); });
  return scale(power, bitsOf(shifted) - bitsOf(magic));
}

Real expm1(Real x) {
  Real near = x * series(x, 16, [](int k) { return 1 / factorial(k + 1); });
  Real y = select(abs(x) < 0.35, near, exp(x) - 1.0);
  return copySign(y, x);
}

/// By s = f / (2 + f): log(1 + f) = 2 (s + s^3 / 3 + s^5 / 5 + ...).
Real log(Real x) {
  Value isTiny = x < 0x1p-1022;
  Bits bits = bitsOf(select(isTiny, x * lift, x));
  Bits exponent = (bits - bitsOf(x.of(M_SQRT1_2))) >> mantissaBits;
  Real f = (bits - (exponent << mantissaBits)).asReal() - 1.0;
  Real e = x.of(
      arith::SIToFPOp::create(x.m->b, x.m->loc, x.m->type, exponent.value));
  e = e + select(isTiny, x.of(-liftBits), 0.0);
  Real s = f / (f + 2.0), t = s * s;
  Real rest = t * series(t, 12, [](int k) { return 2.0 / (2 * k + 3); });
  Real y = f - s * (f - rest);
  y = fma(e, x.of(ln2High), fma(e, x.of(ln2Low), y));
  // Infinity and NaN are their own logarithms.
  y = select(x < infinity, y, x);
  y = select(x == 0.0, x.of(-infinity), y);
  return select(x < 0.0, x.of(std::nan("")), y);
}

/// What the sum loses is added again.
Real log1p(Real x) {
  Real sum = x + 1.0, y = log(sum);
  Real more = (x - (sum - 1.0)) / sum;
  Value isUsual =
      x.m->b.createOrFold<arith::AndIOp>(x.m->loc, 0.0 < sum, sum < infinity);
  return copySign(select(isUsual, y + more, y), x);
}

/// x = n pi / 2 + rest, |rest| <= pi / 4.
FloatMath::QuarterTurns reduceByQuarters(Real x) {
  // No negative zero, which would lose the sign of x = -0.
  Real n = roundEven(x * M_2_PI) + 0.0;
  Real r = fma(n, x.of(-quarterHigh), x);
  r = fma(n, x.of(-quarterLow), r);
  Real rest = fma(n, x.of(-quarterLowest), r);
  return {n.value, select(n == 0.0, r, rest).value};
}

struct SineAndCosine {
  Real sine, cosine;
  /// The angle is nearer to one of the axis of y.
  Value isOdd;
  /// It is in the first half of a turn.
  Value isFirst;
};

/// Of the rest, and where the angle is. `turns` more quarters.
SineAndCosine sineAndCosine(FloatMath &m, FloatMath::QuarterTurns angle,
                            double turns) {
  Real n{&m, angle.n}, r{&m, angle.rest}, t = r * r;
  Real sine = r * series(t, 10, [](int k) {
                return alternating(k) / factorial(2 * k + 1);
              });
  Real cosine =
      series(t, 10, [](int k) { return alternating(k) / factorial(2 * k); });
  // Without a conversion to integers, which infinities would break.
  Real quarter = (n + turns) * 0.25, turn = quarter - floor(quarter);
  return {sine, cosine, abs(turn - 0.5) == 0.25, turn < 0.5};
}

Real sine(Real x, double turns) {
  SineAndCosine of = sineAndCosine(*x.m, reduceByQuarters(x), turns);
  Real y = select(of.isOdd, of.cosine, of.sine);
  return select(of.isFirst, y, -y);
}

Real tangent(FloatMath &m, FloatMath::QuarterTurns angle) {
  SineAndCosine of = sineAndCosine(m, angle, 0);
  return select(of.isOdd, -of.cosine, of.sine) /
         select(of.isOdd, of.sine, of.cosine);
}

/// The angle of t, halved twice, is small: tan(a / 2) = t / (1 + sqrt(1 +
/// t^2)).
Real atan(Real x) {
  Real size = abs(x);
  Value isSteep = 1.0 < size;
  Real t = select(isSteep, 1.0 / size, size);
  for (int i = 0; i != 2; ++i)
    t = t / (sqrt(t * t + 1.0) + 1.0);
  Real square = t * t;
  Real y = t * 4.0 * series(square, 12, [](int k) {
             return alternating(k) / (2 * k + 1);
           });
  return copySign(select(isSteep, quarterHigh - (y - quarterLow), y), x);
}

Real asin(Real x) {
  return atan(x / (sqrt((1.0 - x) * (x + 1.0)) + 1.0)) * 2.0;
}

Real acos(Real x) { return atan(sqrt((1.0 - x) / (x + 1.0))) * 2.0; }

/// From there on e^-x is nothing beside e^x, whose root does not overflow yet.
constexpr double isSteepFrom = 22;

Real sinh(Real x) {
  Real size = abs(x), t = expm1(size), root = exp(size * 0.5);
  Real near = (t + t / (t + 1.0)) * 0.5;
  return copySign(select(size < isSteepFrom, near, root * 0.5 * root), x);
}

Real cosh(Real x) {
  Real size = abs(x), e = exp(size), root = exp(size * 0.5);
  return select(size < isSteepFrom, (e + 1.0 / e) * 0.5, root * 0.5 * root);
}

Real tanh(Real x) {
  Real t = expm1(atMost(abs(x), isSteepFrom) * 2.0);
  return copySign(t / (t + 2.0), x);
}

/// From there on the square's neighbour of one is the square.
constexpr double isSquareFrom = 0x1p28;

Real asinh(Real x) {
  Real size = abs(x), near = atMost(size, isSquareFrom), square = near * near;
  Real y = log1p(near + square / (sqrt(square + 1.0) + 1.0));
  return copySign(select(size < isSquareFrom, y, log(size) + M_LN2), x);
}

Real acosh(Real x) {
  Real above = atMost(x, isSquareFrom) - 1.0;
  Real y = log1p(above + sqrt(above * (above + 2.0)));
  y = select(x < isSquareFrom, y, log(x) + M_LN2);
  return select(x < 1.0, x.of(std::nan("")), y);
}

Real atanh(Real x) {
  Real size = abs(x);
  return copySign(log1p(size * 2.0 / (1.0 - size)) * 0.5, x);
}

/// Where erf's series ends, and the fraction of what is left of 1 begins.
constexpr double isTailFrom = 2;

/// exp(-x^2) x (1 + 2 x^2 / 3 + 4 x^4 / (3 5) + ...) 2 / sqrt(pi), in which
/// nothing cancels.
Real erfNearZero(Real x) {
  Real square = x * x;
  Real sum = series(square, 40, [](int k) {
    double term = 1;
    for (int i = 1; i <= k; ++i)
      term *= 2.0 / (2 * i + 1);
    return term;
  });
  return x * exp(-square) * sum * M_2_SQRTPI;
}

/// By its continued fraction, for 2 <= x.
Real erfcTail(Real x) {
  constexpr int depth = 48;
  x = atMost(x, 28.0);
  Real square = x * x, rest = fma(x, x, -square);
  Real half = 0.5 / square, fraction = x.of(1.0);
  for (int k = depth; k != 0; --k)
    fraction = half * k / fraction + 1.0;
  Real power = exp(-square) * (1.0 - rest);
  return power / (x * fraction) * (0.5 * M_2_SQRTPI);
}

Real erf(Real x) {
  Real size = abs(x);
  Real y = select(size < isTailFrom, erfNearZero(size),
                  1.0 - erfcTail(atLeast(size, isTailFrom)));
  return copySign(y, x);
}

Real erfc(Real x) {
  Real size = abs(x), tail = erfcTail(atLeast(size, isTailFrom));
  Real far = select(x < 0.0, 2.0 - tail, tail);
  return select(size < isTailFrom, 1.0 - erfNearZero(x), far);
}

Real pow(Real x, Real y) {
  FloatMath &m = *x.m;
  auto both = [&](Value a, Value b) -> Value {
    return arith::AndIOp::create(m.b, m.loc, a, b);
  };
  auto isNot = [&](Value a) -> Value {
    return arith::XOrIOp::create(
        m.b, m.loc, a, arith::ConstantIntOp::create(m.b, m.loc, 1, 1));
  };
  Real size = abs(x), half = y * 0.5;
  Real power = exp(y * log(size));
  Value isWhole = y == trunc(y);
  Value isOdd = both(isWhole, isNot(half == trunc(half)));
  // -0 counts, too.
  Value isNegative = m.cmp(arith::CmpFPredicate::OLT,
                           copySign(x.of(1.0), x).value, m.num(0.0));
  power = select(both(isNegative, isOdd), -power, power);
  Value hasNone = both(both(x < 0.0, -infinity < x), isNot(isWhole));
  power = select(hasNone, x.of(std::nan("")), power);
  power = select(both(size == 1.0, abs(y) == infinity), x.of(1.0), power);
  power = select(x == 1.0, x.of(1.0), power);
  return select(y == 0.0, x.of(1.0), power);
}

/// Returns the exponent of a number above 0.
Bits exponentOf(Real x) {
  Value isTiny = x < 0x1p-1022;
  Bits bits = bitsOf(select(isTiny, x * lift, x)) >> mantissaBits;
  return {x.m, x.m->select(isTiny, (bits + -liftBits).value, bits.value)};
}

/// Long division: each step takes a multiple of y 2^k from what is left, of so
/// few digits that it is exact, and leaves less than y 2^k.
Real fmod(Real x, Real y) {
  FloatMath &m = *x.m;
  Real size = abs(x), by = abs(y);
  Value isUsual =
      m.b.createOrFold<arith::AndIOp>(m.loc, size < infinity, 0.0 < by);
  by = select(isUsual, by, 1.0);
  auto step = [&](Real left) {
    constexpr int digits = 51;
    Value most = (exponentOf(left) - exponentOf(by) + -digits).value;
    Bits shift{&m, arith::MaxSIOp::create(m.b, m.loc, most, m.bits(0))};
    Real part = scale(by, shift);
    Real next = fma(-trunc(left / part), part, left);
    // A quotient that was rounded up.
    return select(next < 0.0, next + part, next);
  };
  auto loop = scf::WhileOp::create(
      m.b, m.loc, TypeRange(x.value.getType()),
      ValueRange(select(isUsual, size, 0.0).value),
      [&](OpBuilder &, Location, ValueRange left) {
        Value goesOn = m.cmp(arith::CmpFPredicate::OGE, left[0], by.value);
        scf::ConditionOp::create(m.b, m.loc, goesOn, left);
      },
      [&](OpBuilder &, Location, ValueRange left) {
        scf::YieldOp::create(m.b, m.loc, step({&m, left[0]}).value);
      });
  Real rest = copySign(x.of(loop.getResult(0)), x);
  return select(isUsual, rest, std::nan(""));
}

using Unary = Real (*)(Real);
Unary findUnary(StringRef name) {
  return llvm::StringSwitch<Unary>(name)
      .Case("exp", exp)
      .Case("expm1", expm1)
      .Case("log", log)
      .Case("log1p", log1p)
      .Case("sin", [](Real x) { return sine(x, 0); })
      .Case("cos", [](Real x) { return sine(x, 1); })
      .Case("tan", [](Real x) { return tangent(*x.m, reduceByQuarters(x)); })
      .Case("asin", asin)
      .Case("acos", acos)
      .Case("atan", atan)
      .Case("sinh", sinh)
      .Case("cosh", cosh)
      .Case("tanh", tanh)
      .Case("asinh", asinh)
      .Case("acosh", acosh)
      .Case("atanh", atanh)
      .Case("erf", erf)
      .Case("erfc", erfc)
      .Default(nullptr);
}

/// Returns the result of a function in f64; null for one that is not known.
Value expand(FloatMath &m, StringRef name, ValueRange operands, bool isF32) {
  Real x{&m, operands[0]};
  // The numbers of f32 may be anything up to 2^128.
  if (name == "tan" && isF32)
    return tangent(m, m.reduceTurns(x.value)).value;
  if (name == "pow" && operands.size() == 2)
    return pow(x, {&m, operands[1]}).value;
  if (name == "fmod" && operands.size() == 2)
    return fmod(x, {&m, operands[1]}).value;
  Unary function = operands.size() == 1 ? findUnary(name) : nullptr;
  return function ? function(x).value : Value();
}

/// Puts arithmetic in the place of an operation, if the function is known.
void expand(Operation *op, StringRef name) {
  OpBuilder b(op);
  FloatMath m(b, b.getF64Type());
  bool isF32 = op->getResult(0).getType().isF32();
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(
        isF32 ? Value(arith::ExtFOp::create(b, op->getLoc(), m.type, operand))
              : operand);
  Value result = expand(m, name, operands, isF32);
  if (!result)
    return;
  if (isF32)
    result = arith::TruncFOp::create(b, op->getLoc(), b.getF32Type(), result);
  op->getResult(0).replaceAllUsesWith(result);
  op->erase();
}

} // namespace

void expandLibraryCalls(ModuleOp module) {
  SmallVector<std::pair<Operation *, StringRef>> found;
  module.walk([&](Operation *op) {
    if (auto call = dyn_cast<LLVM::CallOp>(op)) {
      StringRef name = call.getCallee().value_or("");
      if (call.getNumResults() == 1 && call.getResult().getType().isF32())
        name.consume_back("f");
      if (call.getNumResults() == 1)
        found.emplace_back(op, name);
    } else if (isa<arith::RemFOp>(op)) {
      found.emplace_back(op, "fmod");
    }
  });
  for (auto [op, name] : found)
    expand(op, name);
  for (auto function :
       llvm::make_early_inc_range(module.getOps<LLVM::LLVMFuncOp>()))
    if (function.isExternal() &&
        SymbolTable::symbolKnownUseEmpty(function.getSymNameAttr(), module))
      function.erase();
}

} // namespace ax::codegen
