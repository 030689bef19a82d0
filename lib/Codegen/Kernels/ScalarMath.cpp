//===- ScalarMath.cpp - Functions of one floating-point number ------------===//

#include "ScalarMath.h"

#include "ax/Dialect/Ax.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace ax::codegen {
namespace {

/// Short names for arithmetic on values of one type.
class Float {
public:
  Float(OpBuilder &b, Type type)
      : b(b), loc(b.getUnknownLoc()), type(cast<FloatType>(type)) {}

  Value num(double v) {
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(type, v));
  }
  Value bits(int64_t v) {
    return arith::ConstantIntOp::create(b, loc, v, type.getWidth());
  }
  Value add(Value x, Value y) { return op<arith::AddFOp>(x, y); }
  Value sub(Value x, Value y) { return op<arith::SubFOp>(x, y); }
  Value mul(Value x, Value y) { return op<arith::MulFOp>(x, y); }
  Value div(Value x, Value y) { return op<arith::DivFOp>(x, y); }
  Value neg(Value x) { return arith::NegFOp::create(b, loc, x); }
  /// x y + z, in one operation where the machine has it.
  Value fma(Value x, Value y, Value z) {
    auto contract = arith::FastMathFlags::contract;
    Value product = arith::MulFOp::create(b, loc, x, y, contract);
    return arith::AddFOp::create(b, loc, product, z, contract);
  }
  Value less(Value x, Value y) { return cmp(arith::CmpFPredicate::OLT, x, y); }
  Value cmp(arith::CmpFPredicate predicate, Value x, Value y) {
    return arith::CmpFOp::create(b, loc, predicate, x, y);
  }
  Value select(Value c, Value x, Value y) {
    return arith::SelectOp::create(b, loc, c, x, y);
  }
  /// Both keep a NaN in x.
  Value atLeast(Value x, double lo) {
    Value bound = num(lo);
    return select(less(x, bound), bound, x);
  }
  Value atMost(Value x, double hi) {
    Value bound = num(hi);
    return select(less(bound, x), bound, x);
  }
  Value abs(Value x) { return math::AbsFOp::create(b, loc, x); }
  Value sqrt(Value x) { return math::SqrtOp::create(b, loc, x); }
  Value copySign(Value x, Value sign) {
    return math::CopySignOp::create(b, loc, x, sign);
  }
  Value toBits(Value x) {
    return arith::BitcastOp::create(b, loc, b.getIntegerType(type.getWidth()),
                                    x);
  }
  Value fromBits(Value x) { return arith::BitcastOp::create(b, loc, type, x); }
  /// Coefficients from the constant one up.
  Value polynomial(Value x, ArrayRef<double> coefs) {
    Value sum = num(coefs.back());
    for (double coef : llvm::reverse(coefs.drop_back()))
      sum = fma(sum, x, num(coef));
    return sum;
  }

  Value exp(Value x);
  Value expm1(Value x);
  Value log(Value x);
  Value log1p(Value x);
  Value tanh(Value x);
  Value erf(Value x);
  Value sine(Value x, bool cosine);

  OpBuilder &b;
  Location loc;
  FloatType type;

private:
  template <typename Op>
  Value op(Value x, Value y) {
    return Op::create(b, loc, x, y);
  }
  struct Reduced {
    Value n;    // integer, as bits
    Value rest; // exp(rest) - 1, |rest| <= log(2) / 2
  };
  Reduced reduceExp(Value x);
  Value powerOfTwo(Value n) {
    Value biased = arith::AddIOp::create(b, loc, n, bits(127));
    return fromBits(arith::ShLIOp::create(b, loc, biased, bits(23)));
  }
  struct Scaled {
    Value exponent, mantissa;
  };
  Scaled scaleForLog(Value x);
  Value logOfScaled(Scaled s);
  Value logOrSpecial(Value x, Value y);
  Value logPolynomial(Value f);
};

/// x = n log(2) + r; the number 1.5 2^23 makes the sum's low bits the integer.
Float::Reduced Float::reduceExp(Value x) {
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

Value Float::exp(Value x) {
  // 0 where it would be below 2^-125: subnormal numbers, which masked softmax
  // is full of, are slow and of no use.
  Value gone = less(x, num(-86.9));
  Reduced e = reduceExp(atMost(select(gone, num(0.0), x), 89.0));
  // 2^(n - 1) times two: 2^n may be too large.
  Value n = arith::SubIOp::create(b, loc, e.n, bits(1));
  Value mantissa = fma(e.rest, num(2.0), num(2.0));
  return select(gone, num(0.0), mul(mantissa, powerOfTwo(n)));
}

Value Float::expm1(Value x) {
  // 2^n (exp(r) - 1) + (2^n - 1); n <= 127 below the bound.
  Reduced e = reduceExp(atMost(atLeast(x, -20.0), 88.0));
  Value scale = powerOfTwo(e.n);
  Value small = fma(e.rest, scale, sub(scale, num(1.0)));
  return select(less(num(88.0), x), exp(x), small);
}

/// log(1 + f) for sqrt(1/2) <= 1 + f <= sqrt(2), relative error 1e-9.
Value Float::logPolynomial(Value f) {
  Value r = polynomial(f, {3.333331347e-01, -2.500000894e-01, 2.000211924e-01,
                           -1.666799635e-01, 1.421955228e-01, -1.240558922e-01,
                           1.188816279e-01, -1.167565137e-01, 6.746638566e-02});
  Value f2 = mul(f, f);
  Value tail = fma(mul(f2, f), r, mul(f2, num(-0.5)));
  return add(f, tail);
}

/// x normal and positive: x = 2^exponent (1 + mantissa), as for logPolynomial.
Float::Scaled Float::scaleForLog(Value x) {
  Value raw = arith::SubIOp::create(b, loc, toBits(x), bits(0x3f3504f3));
  Value exponent = arith::ShRSIOp::create(b, loc, raw, bits(23));
  Value mantissaBits = arith::SubIOp::create(
      b, loc, toBits(x), arith::ShLIOp::create(b, loc, exponent, bits(23)));
  return {arith::SIToFPOp::create(b, loc, type, exponent),
          sub(fromBits(mantissaBits), num(1.0))};
}

Value Float::logOfScaled(Scaled s) {
  Value high = mul(s.exponent, num(0.693145751953125));
  Value low =
      fma(s.exponent, num(1.42860682030941723e-6), logPolynomial(s.mantissa));
  return add(low, high);
}

/// y, the logarithm of x, where x is finite and positive; the right thing
/// elsewhere.
Value Float::logOrSpecial(Value x, Value y) {
  const double inf = std::numeric_limits<double>::infinity();
  // +inf and NaN are their own logarithms.
  y = select(less(x, num(inf)), y, x);
  y = select(cmp(arith::CmpFPredicate::OEQ, x, num(0.0)), num(-inf), y);
  return select(less(x, num(0.0)), num(std::nan("")), y);
}

Value Float::log(Value x) {
  Value tiny = less(x, num(1.17549435e-38));
  Scaled s = scaleForLog(select(tiny, mul(x, num(8388608.0)), x));
  s.exponent = add(s.exponent, select(tiny, num(-23.0), num(0.0)));
  return logOrSpecial(x, logOfScaled(s));
}

Value Float::log1p(Value x) {
  // Near 0 the sum would lose what counts.
  Value near = less(abs(x), num(0.29));
  Value sum = add(x, num(1.0));
  Scaled s = scaleForLog(sum);
  s.exponent = select(near, num(0.0), s.exponent);
  s.mantissa = select(near, x, s.mantissa);
  return logOrSpecial(sum, logOfScaled(s));
}

Value Float::tanh(Value x) {
  // t / (t + 2) with t = exp(2 |x|) - 1; 1 in f32 from 9.02 on.
  Value doubled = atMost(mul(abs(x), num(2.0)), 20.0);
  Reduced e = reduceExp(doubled);
  Value scale = powerOfTwo(e.n);
  Value t = fma(e.rest, scale, sub(scale, num(1.0)));
  return copySign(div(t, add(t, num(2.0))), x);
}

/// x P(x^2) / Q(x^2), minimax for |x| <= 4, where erf is 1 in f32.
Value Float::erf(Value x) {
  Value c = atMost(atLeast(x, -4.0), 4.0);
  Value t = mul(c, c);
  Value p = polynomial(t, {1.128379107e+00, 1.935428977e-01, 5.310147256e-02,
                           3.883257974e-03, 2.845650306e-04, 1.986810275e-06});
  Value q = polynomial(t, {1.0, 5.048555136e-01, 1.153491214e-01,
                           1.520707365e-02, 1.185552566e-03, 3.742042463e-05});
  return atMost(atLeast(div(mul(c, p), q), -1.0), 1.0);
}

/// In f64, whose 53 bits leave f32 enough after the multiples of pi / 2 are
/// taken away.
Value Float::sine(Value x, bool cosine) {
  Float d(b, b.getF64Type());
  Value wide = arith::ExtFOp::create(b, loc, d.type, x);
  Value n = math::RoundEvenOp::create(b, loc,
                                      d.mul(wide, d.num(0.636619772367581343)));
  Value r = d.fma(n, d.num(-1.57079632679489655800), wide);
  r = d.fma(n, d.num(-6.12323399573676603587e-17), r);
  Value t = d.mul(r, r);
  Value s =
      d.polynomial(t, {-1.66666666416070808e-01, 8.33332938359164326e-03,
                       -1.98393340856952739e-04, 2.71830425160036271e-06});
  s = d.fma(d.mul(t, r), s, r);
  Value c =
      d.polynomial(t, {4.16666666194551588e-02, -1.38888834969647882e-03,
                       2.47994593347259635e-05, -2.72056864946143394e-07});
  c = d.fma(d.mul(t, t), c, d.fma(t, d.num(-0.5), d.num(1.0)));
  // n mod 4 without an integer conversion, which infinities would break.
  Value quarter = d.mul(cosine ? d.add(n, d.num(1.0)) : n, d.num(0.25));
  Value turn = d.sub(quarter, math::FloorOp::create(b, loc, quarter));
  Value odd = d.cmp(arith::CmpFPredicate::OEQ, d.abs(d.sub(turn, d.num(0.5))),
                    d.num(0.25));
  Value y = d.select(odd, c, s);
  y = d.select(d.less(turn, d.num(0.5)), y, d.neg(y));
  return arith::TruncFOp::create(b, loc, type, y);
}

/// A call of the C library's function, which has no side effect we see.
Value callLibm(OpBuilder &b, StringRef name, ValueRange operands) {
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

const char *libmName(UnaryKind kind) {
  switch (kind) {
  case UnaryKind::exp:
    return "exp";
  case UnaryKind::log:
    return "log";
  case UnaryKind::log1p:
    return "log1p";
  case UnaryKind::expm1:
    return "expm1";
  case UnaryKind::sin:
    return "sin";
  case UnaryKind::cos:
    return "cos";
  case UnaryKind::tan:
    return "tan";
  case UnaryKind::asin:
    return "asin";
  case UnaryKind::acos:
    return "acos";
  case UnaryKind::atan:
    return "atan";
  case UnaryKind::sinh:
    return "sinh";
  case UnaryKind::cosh:
    return "cosh";
  case UnaryKind::tanh:
    return "tanh";
  case UnaryKind::asinh:
    return "asinh";
  case UnaryKind::acosh:
    return "acosh";
  case UnaryKind::atanh:
    return "atanh";
  case UnaryKind::erf:
    return "erf";
  default:
    llvm_unreachable("not a function of the C library");
  }
}

} // namespace

Value emitFloatFunction(OpBuilder &b, UnaryKind kind, Value x) {
  Float f(b, x.getType());
  bool single = x.getType().isF32();
  auto call = [&](UnaryKind which, Value operand) {
    return emitFloatFunction(b, which, operand);
  };
  switch (kind) {
  case UnaryKind::sqrt:
    return f.sqrt(x);
  case UnaryKind::rsqrt:
    return f.div(f.num(1.0), f.sqrt(x));
  case UnaryKind::reciprocal:
    return f.div(f.num(1.0), x);
  case UnaryKind::sigmoid:
    return f.div(f.num(1.0), f.add(f.num(1.0), call(UnaryKind::exp, f.neg(x))));
  case UnaryKind::silu:
    return f.div(x, f.add(f.num(1.0), call(UnaryKind::exp, f.neg(x))));
  case UnaryKind::gelu: {
    Value e = call(UnaryKind::erf, f.mul(x, f.num(M_SQRT1_2)));
    Value half = f.mul(x, f.num(0.5));
    return f.fma(half, e, half);
  }
  case UnaryKind::gelu_tanh: {
    Value cubic = f.fma(f.mul(f.mul(x, x), x), f.num(0.044715), x);
    Value t = call(UnaryKind::tanh, f.mul(cubic, f.num(0.79788456080286536)));
    Value half = f.mul(x, f.num(0.5));
    return f.fma(half, t, half);
  }
  case UnaryKind::softplus: {
    Value tail = call(UnaryKind::log1p, call(UnaryKind::exp, f.neg(f.abs(x))));
    return f.add(f.atLeast(x, 0.0), tail);
  }
  default:
    break;
  }
  if (!single)
    return callLibm(b, libmName(kind), x);
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
  default:
    return callLibm(b, libmName(kind), x);
  }
}

Value emitPow(OpBuilder &b, Value x, Value y) {
  Float f(b, x.getType());
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
  return callLibm(b, "pow", {x, y});
}

} // namespace ax::codegen
