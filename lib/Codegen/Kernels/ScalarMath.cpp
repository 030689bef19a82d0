//===- ScalarMath.cpp - Functions of one floating-point number ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ScalarMath.h"

#include "GpuMath.h"

#include "ax/Dialect/Ax.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace ax::codegen {

/// x = n log(2) + r; the number 1.5 2^23 makes the sum's low bits the integer.
FloatMath::Reduced FloatMath::reduceExp(Value x) {
  Value magic = num(12582912.0);
  Value shifted = add(mul(x, num(1.44269504088896341)), magic);
  Value n = sub(shifted, magic);
  Value r = fma(n, num(-0.693145751953125), x);
  r = fma(n, num(-1.42860682030941723e-6), r);
  // Minimax of (exp(r) - 1 - r) / r^2, relative error 3e-9.
  Value q = polynomial(r, {4.999999404e-01, 1.666651964e-01, 4.166839272e-02,
                           8.368780836e-03, 1.381446724e-03});
  Value rest = fma(mul(r, r), q, r);
  return {arith::SubIOp::create(b, loc, toBits(shifted), toBits(magic)), rest};
}

/// exp(x + low) = (1 + factor) 2^h 2^h. Both powers are normal numbers, so that
/// their product is rounded once, where it is subnormal too. They are 0 from
/// -176 down: what is far too small (a mask's -1e4) does not underflow, which
/// takes processors long.
FloatMath::Exponential FloatMath::exponential(Value x, Value low) {
  x = atLeast(x, -176.7);
  Value magic = num(12582912.0);
  Value shifted = add(mul(x, num(0.721347520444481704)), magic);
  Value h = sub(shifted, magic);
  Value r = fma(h, num(-1.38629150390625), x);
  r = fma(h, num(-2.85721364060938446e-6), r);
  if (low)
    r = add(r, low);
  // Minimax of (exp(r) - 1 - r) / r^2 for |r| <= log(2), relative error 1.4e-8.
  Value q = polynomial(r, {5.000003576e-01, 1.666661501e-01, 4.166127741e-02,
                           8.336097933e-03, 1.410426339e-03, 1.961185335e-04});
  Value power =
      powerOfTwo(arith::SubIOp::create(b, loc, toBits(shifted), toBits(magic)));
  return {fma(mul(r, r), q, r), power};
}

/// x (1 + factor) is rounded once.
Value FloatMath::times(Value x, Exponential e) {
  return mul(mul(fma(x, e.factor, x), e.power), e.power);
}

Value FloatMath::onePlus(Exponential e) {
  return fma(mul(add(e.factor, num(1.0)), e.power), e.power, num(1.0));
}

/// The halves are powers of two up to infinity.
Value FloatMath::exp(Value x) {
  return times(num(1.0), exponential(atMost(x, 89.0), {}));
}

Value FloatMath::expFlushed(Value x) {
  // 2^-127 has the bits of 0.
  Reduced e = reduceExp(atLeast(x, -88.03));
  return mul(add(e.rest, num(1.0)), powerOfTwo(e.n));
}

Value FloatMath::expm1(Value x) {
  // 2^n (exp(r) - 1) + (2^n - 1); n <= 127 below the bound.
  Reduced e = reduceExp(atMost(atLeast(x, -20.0), 88.0));
  Value scale = powerOfTwo(e.n);
  Value small = fma(e.rest, scale, sub(scale, num(1.0)));
  return copySign(select(less(num(88.0), x), exp(x), small), x);
}

/// Made of exp(-|x|), which does not overflow.
Value FloatMath::sigmoid(Value x) {
  Exponential e = exponential(neg(abs(x)), {});
  Value one = num(1.0);
  return quotient(select(less(x, num(0.0)), times(one, e), one), onePlus(e));
}

/// x sigmoid(z), given exp(-|z|) of a z that has the sign of x.
Value FloatMath::silu(Value x, Exponential e) {
  return quotient(select(less(x, num(0.0)), times(x, e), x), onePlus(e));
}

/// log(1 + f) for sqrt(1/2) <= 1 + f <= sqrt(2), relative error 1e-9.
Value FloatMath::logPolynomial(Value f) {
  Value r = polynomial(f, {3.333331347e-01, -2.500000894e-01, 2.000211924e-01,
                           -1.666799635e-01, 1.421955228e-01, -1.240558922e-01,
                           1.188816279e-01, -1.167565137e-01, 6.746638566e-02});
  Value f2 = mul(f, f);
  Value tail = fma(mul(f2, f), r, mul(f2, num(-0.5)));
  return add(f, tail);
}

/// x normal and positive: x = 2^exponent (1 + mantissa), as for logPolynomial.
FloatMath::Scaled FloatMath::scaleForLog(Value x) {
  Value raw = arith::SubIOp::create(b, loc, toBits(x), bits(0x3f3504f3));
  Value exponent = arith::ShRSIOp::create(b, loc, raw, bits(23));
  Value mantissaBits = arith::SubIOp::create(
      b, loc, toBits(x), arith::ShLIOp::create(b, loc, exponent, bits(23)));
  return {arith::SIToFPOp::create(b, loc, type, exponent),
          sub(fromBits(mantissaBits), num(1.0))};
}

/// `polynomial`: of the mantissa.
Value FloatMath::logOfScaled(Value exponent, Value polynomial) {
  Value high = mul(exponent, num(0.693145751953125));
  Value low = fma(exponent, num(1.42860682030941723e-6), polynomial);
  return add(low, high);
}

/// y, the logarithm of x, where x is finite and positive; the right thing
/// elsewhere.
Value FloatMath::logOrSpecial(Value x, Value y) {
  const double inf = std::numeric_limits<double>::infinity();
  // +inf and NaN are their own logarithms.
  y = select(less(x, num(inf)), y, x);
  y = select(cmp(arith::CmpFPredicate::OEQ, x, num(0.0)), num(-inf), y);
  return select(less(x, num(0.0)), num(std::nan("")), y);
}

Value FloatMath::log(Value x) {
  Value tiny = less(x, num(1.17549435e-38));
  Scaled s = scaleForLog(select(tiny, mul(x, num(8388608.0)), x));
  s.exponent = add(s.exponent, select(tiny, num(-23.0), num(0.0)));
  return logOrSpecial(x, logOfScaled(s.exponent, logPolynomial(s.mantissa)));
}

Value FloatMath::log1p(Value x) {
  // Near 0 the sum would lose what counts.
  Value near = less(abs(x), num(0.29));
  Value sum = add(x, num(1.0));
  Scaled s = scaleForLog(sum);
  Value polynomial = logPolynomial(select(near, x, s.mantissa));
  Value y = logOrSpecial(sum, logOfScaled(s.exponent, polynomial));
  return select(near, polynomial, y);
}

Value FloatMath::tanh(Value x) {
  // t / (t + 2) with t = exp(2 |x|) - 1; 1 in f32 from 9.02 on.
  Value doubled = atMost(mul(abs(x), num(2.0)), 20.0);
  Reduced e = reduceExp(doubled);
  Value scale = powerOfTwo(e.n);
  Value t = fma(e.rest, scale, sub(scale, num(1.0)));
  return copySign(quotient(t, add(t, num(2.0))), x);
}

/// 1 - 2^-Y with Y = -log2(1 - erf(|x|)), a polynomial; as expm1 near 0.
Value FloatMath::erf(Value x) {
  Value t = atMost(abs(x), 4.0); // 1 in f32 from 3.9 on.
  Value y = polynomial(t, {1.627907038e+00, 9.184434414e-01, 1.483298391e-01,
                           -2.787535638e-02, 2.968034241e-04, 1.805876149e-03,
                           -5.496633821e-04, 5.872854672e-05});
  y = mul(t, y);
  Value magic = num(12582912.0);
  Value shifted = sub(magic, y);
  Value f = sub(neg(y), sub(shifted, magic));
  // Minimax of (2^f - 1) / f for |f| <= 1/2, relative error 1e-8.
  Value q = polynomial(f, {6.931471825e-01, 2.402264923e-01, 5.550357327e-02,
                           9.618237615e-03, 1.339073526e-03, 1.540351223e-04});
  Value power =
      powerOfTwo(arith::SubIOp::create(b, loc, toBits(shifted), toBits(magic)));
  Value rest = mul(f, q);
  return copySign(fma(neg(rest), power, sub(num(1.0), power)), x);
}

/// x Phi(x) = x - x Phi(-x), where t = |x| has Phi(-t) = exp(-t^2 / 2) G / (t +
/// 1), and G, (t + 1) erfcx(t / sqrt(2)) / 2, is nearly constant: a polynomial
/// of (t - 3) / (t + 3). Few roundings are left, for 4 units of the last place.
Value FloatMath::gelu(Value x) {
  Value size = abs(x);
  Value t = atMost(size, 20.0); // 0 in f32 from 14.5 on.
  Value square = mul(t, t), rest = exactFma(t, t, neg(square));
  // Minimax for t <= 14.6, relative error 6e-9.
  Value g = polynomial(quotient(sub(t, num(3.0)), add(t, num(3.0))),
                       {4.860557954e-01, -9.652678275e-02, -1.643236675e-02,
                        4.516463682e-02, -2.272658902e-02, 1.155110193e-03,
                        2.990926223e-03, -3.403662152e-04, -4.694824611e-04,
                        1.215739206e-05, 4.647479117e-05});
  Value isBelow = less(x, num(0.0));
  // What t + 1 loses, where t < 1, is made good by the exponent: 1 - t / (t +
  // 1) is its inverse.
  Value sum = add(t, num(1.0));
  Value part = quotient(select(isBelow, size, t), sum);
  Value lost = sub(t, sub(sum, num(1.0)));
  Value factor = mul(part, g);
  Value low = fma(neg(lost), sub(num(1.0), part), mul(rest, num(-0.5)));
  Value tail = times(factor, exponential(mul(square, num(-0.5)), low));
  return select(isBelow, neg(tail), sub(x, tail));
}

/// x sigmoid(z) with z = sqrt(8 / pi) (x + 0.044715 x^3), of which exp wants
/// more digits than f32 has: z is a sum of two numbers.
Value FloatMath::geluTanh(Value x) {
  constexpr double linear = 1.5957691216057308, cubic = 0.07135481627260025;
  constexpr float linearHigh = linear, cubicHigh = cubic;
  Value t = atMost(abs(x), 16.0); // exp(-z) is 0 from 11 on.
  Value square = mul(t, t), squareLow = exactFma(t, t, neg(square));
  Value term = mul(square, num(cubicHigh));
  Value low = exactFma(square, num(cubicHigh), neg(term));
  low =
      fma(squareLow, num(cubicHigh), fma(square, num(cubic - cubicHigh), low));
  // What the sum loses (Knuth).
  Value sum = add(num(linearHigh), term);
  Value part = sub(sum, num(linearHigh));
  Value lost = add(sub(num(linearHigh), sub(sum, part)), sub(term, part));
  low = add(add(lost, low), num(linear - linearHigh));
  Value z = mul(t, sum);
  Value rest = fma(t, low, exactFma(t, sum, neg(z)));
  return silu(x, exponential(neg(z), neg(rest)));
}

Value emitLibraryCall(OpBuilder &b, StringRef name, ValueRange operands) {
  Type type = operands.front().getType();
  std::string symbol = name.str() + (type.isF32() ? "f" : "");
  auto module =
      b.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  if (!module.lookupSymbol(symbol)) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    auto fnType = LLVM::LLVMFunctionType::get(
        type, SmallVector<Type>(operands.size(), type));
    auto fn = LLVM::LLVMFuncOp::create(b, b.getUnknownLoc(), symbol, fnType);
    fn.setMemoryEffectsAttr(LLVM::MemoryEffectsAttr::get(
        b.getContext(),
        {LLVM::ModRefInfo::NoModRef, LLVM::ModRefInfo::NoModRef,
         LLVM::ModRefInfo::NoModRef, LLVM::ModRefInfo::NoModRef,
         LLVM::ModRefInfo::NoModRef, LLVM::ModRefInfo::NoModRef}));
    fn.setNoUnwind(true);
    fn.setWillReturn(true);
  }
  return LLVM::CallOp::create(b, b.getUnknownLoc(), TypeRange(type), symbol,
                              operands)
      .getResult();
}

/// x sigmoid(z), given exp(-|z| / 2) of a z that has the sign of x.
static Value siluOf(FloatMath &f, Value x, Value root) {
  Value small = f.mul(f.mul(x, root), root);
  return f.div(f.select(f.less(x, f.num(0.0)), small, x),
               f.fma(root, root, f.num(1.0)));
}

Value emitExpFlushed(OpBuilder &b, Value x) {
  return x.getType().isF32() ? FloatMath(b, x.getType()).expFlushed(x)
                             : emitLibraryCall(b, "exp", x);
}

static Value emitBetterFormF32(FloatMath &f, UnaryKind kind, Value x) {
  switch (kind) {
  case UnaryKind::exp:
    return f.exp(x);
  case UnaryKind::expm1:
    return f.expm1(x);
  case UnaryKind::log:
    return f.log(x);
  case UnaryKind::log1p:
    return f.log1p(x);
  case UnaryKind::tanh:
    return f.tanh(x);
  case UnaryKind::erf:
    return f.erf(x);
  case UnaryKind::sin:
    return f.sine(x, false);
  case UnaryKind::cos:
    return f.sine(x, true);
  case UnaryKind::sigmoid:
    return f.sigmoid(x);
  case UnaryKind::silu:
    return f.silu(x, f.exponential(f.neg(f.abs(x)), {}));
  case UnaryKind::gelu:
    return f.gelu(x);
  case UnaryKind::gelu_tanh:
    return f.geluTanh(x);
  default:
    return {};
  }
}

static Value emitBetterFormF64(OpBuilder &b, FloatMath &f, UnaryKind kind,
                               Value x) {
  switch (kind) {
  case UnaryKind::silu:
    return siluOf(
        f, x, emitLibraryCall(b, "exp", f.mul(f.neg(f.abs(x)), f.num(0.5))));
  case UnaryKind::gelu_tanh: {
    Value cube = f.mul(f.mul(x, x), x);
    Value z = f.mul(f.fma(cube, f.num(0.044715), x), f.num(1.5957691216057308));
    return siluOf(f, x,
                  emitLibraryCall(b, "exp", f.mul(f.abs(z), f.num(-0.5))));
  }
  default:
    return {};
  }
}

Value emitBetterForm(OpBuilder &b, ScalarUnit unit, UnaryKind kind, Value x) {
  Type type = x.getType();
  if (!isa<FloatType>(type))
    return {};
  FloatMath f(b, type);
  if (!type.isF32())
    return emitBetterFormF64(b, f, kind, x);
  GpuMath ofGpu(b, type);
  return emitBetterFormF32(unit == ScalarUnit::Gpu ? ofGpu : f, kind, x);
}

Value emitPow(OpBuilder &b, Value x, Value y) {
  FloatMath f(b, x.getType());
  FloatAttr exponent;
  if (matchPattern(y, m_Constant(&exponent))) {
    double e = exponent.getValueAsDouble();
    if (e == 1.0)
      return x;
    if (e == 2.0)
      return f.mul(x, x);
    if (e == 3.0)
      return f.mul(f.mul(x, x), x);
    if (e == -1.0)
      return f.div(f.num(1.0), x);
    // pow is +0 at -0 and +inf at -inf, where sqrt is -0 and NaN.
    if (e == 0.5) {
      Value root = f.sqrt(f.add(x, f.num(0.0)));
      Value inf = f.num(std::numeric_limits<double>::infinity());
      return f.select(f.cmp(arith::CmpFPredicate::OEQ, f.abs(x), inf), inf,
                      root);
    }
  }
  return emitLibraryCall(b, "pow", {x, y});
}

} // namespace ax::codegen
