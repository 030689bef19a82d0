//===- FloatMath.h - Arithmetic and functions of one number -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_CODEGEN_KERNELS_FLOATMATH_H
#define AX_LIB_CODEGEN_KERNELS_FLOATMATH_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace ax::codegen {

/// Short names for arithmetic on values of one type, and functions made of it
/// for any machine. GpuMath.h has what a GPU does by instructions of its own.
class FloatMath {
public:
  FloatMath(mlir::OpBuilder &b, mlir::Type type)
      : b(b), loc(b.getUnknownLoc()), type(llvm::cast<mlir::FloatType>(type)) {}
  virtual ~FloatMath() = default;

  mlir::Value num(double v) {
    return mlir::arith::ConstantOp::create(b, loc, b.getFloatAttr(type, v));
  }
  mlir::Value bits(int64_t v) {
    return mlir::arith::ConstantIntOp::create(b, loc, v, type.getWidth());
  }
  mlir::Value add(mlir::Value x, mlir::Value y) {
    return op<mlir::arith::AddFOp>(x, y);
  }
  mlir::Value sub(mlir::Value x, mlir::Value y) {
    return op<mlir::arith::SubFOp>(x, y);
  }
  mlir::Value mul(mlir::Value x, mlir::Value y) {
    return op<mlir::arith::MulFOp>(x, y);
  }
  mlir::Value div(mlir::Value x, mlir::Value y) {
    return op<mlir::arith::DivFOp>(x, y);
  }
  mlir::Value neg(mlir::Value x) {
    return mlir::arith::NegFOp::create(b, loc, x);
  }
  /// x y + z, in one operation where the machine has it.
  mlir::Value fma(mlir::Value x, mlir::Value y, mlir::Value z) {
    auto contract = mlir::arith::FastMathFlags::contract;
    mlir::Value product = mlir::arith::MulFOp::create(b, loc, x, y, contract);
    return mlir::arith::AddFOp::create(b, loc, product, z, contract);
  }
  /// x y + z, rounded once on every machine.
  mlir::Value exactFma(mlir::Value x, mlir::Value y, mlir::Value z) {
    return mlir::math::FmaOp::create(b, loc, x, y, z);
  }
  mlir::Value less(mlir::Value x, mlir::Value y) {
    return cmp(mlir::arith::CmpFPredicate::OLT, x, y);
  }
  mlir::Value cmp(mlir::arith::CmpFPredicate predicate, mlir::Value x,
                  mlir::Value y) {
    return mlir::arith::CmpFOp::create(b, loc, predicate, x, y);
  }
  mlir::Value select(mlir::Value c, mlir::Value x, mlir::Value y) {
    return mlir::arith::SelectOp::create(b, loc, c, x, y);
  }
  /// A NaN in x stays one in both.
  mlir::Value atLeast(mlir::Value x, double lo) {
    mlir::Value bound = num(lo);
    return select(less(x, bound), bound, x);
  }
  mlir::Value atMost(mlir::Value x, double hi) {
    mlir::Value bound = num(hi);
    return select(less(bound, x), bound, x);
  }
  mlir::Value abs(mlir::Value x) {
    return mlir::math::AbsFOp::create(b, loc, x);
  }
  mlir::Value sqrt(mlir::Value x) {
    return mlir::math::SqrtOp::create(b, loc, x);
  }
  mlir::Value copySign(mlir::Value x, mlir::Value sign) {
    return mlir::math::CopySignOp::create(b, loc, x, sign);
  }
  mlir::Value toBits(mlir::Value x) {
    return mlir::arith::BitcastOp::create(b, loc,
                                          b.getIntegerType(type.getWidth()), x);
  }
  mlir::Value fromBits(mlir::Value x) {
    return mlir::arith::BitcastOp::create(b, loc, type, x);
  }
  /// Coefficients from the constant one up.
  mlir::Value polynomial(mlir::Value x, llvm::ArrayRef<double> coefs) {
    mlir::Value sum = num(coefs.back());
    for (double coef : llvm::reverse(coefs.drop_back()))
      sum = fma(sum, x, num(coef));
    return sum;
  }

  virtual mlir::Value exp(mlir::Value x);
  /// x <= 0; 0 instead of subnormal numbers.
  mlir::Value expFlushed(mlir::Value x);
  mlir::Value expm1(mlir::Value x);
  /// exp of a number, not yet multiplied out: it may be subnormal where what it
  /// is multiplied by makes a normal number of it.
  struct Exponential {
    mlir::Value factor, power;
  };
  /// Of x + low, x <= 0; `low`, if there is one, is small.
  virtual Exponential exponential(mlir::Value x, mlir::Value low);
  virtual mlir::Value times(mlir::Value x, Exponential e);
  virtual mlir::Value onePlus(Exponential e);
  /// x / y for a y between 2^-126 and 2^126.
  virtual mlir::Value quotient(mlir::Value x, mlir::Value y) {
    return div(x, y);
  }
  mlir::Value sigmoid(mlir::Value x);
  mlir::Value silu(mlir::Value x, Exponential e);
  mlir::Value log(mlir::Value x);
  mlir::Value log1p(mlir::Value x);
  mlir::Value tanh(mlir::Value x);
  mlir::Value erf(mlir::Value x);
  mlir::Value gelu(mlir::Value x);
  mlir::Value geluTanh(mlir::Value x);
  mlir::Value sine(mlir::Value x, bool cosine);
  /// x = n pi / 2 + rest, |rest| <= pi / 4; n may be off by multiples of 4.
  struct QuarterTurns {
    mlir::Value n, rest;
  };
  /// In f64, of a number of f32.
  QuarterTurns reduceTurns(mlir::Value wide);

  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::FloatType type;

private:
  template <typename Op>
  mlir::Value op(mlir::Value x, mlir::Value y) {
    return Op::create(b, loc, x, y);
  }
  struct Reduced {
    mlir::Value n;    // integer, as bits
    mlir::Value rest; // exp(rest) - 1, |rest| <= log(2) / 2
  };
  Reduced reduceExp(mlir::Value x);
  /// -127 <= n <= 127; 0 for -127.
  mlir::Value powerOfTwo(mlir::Value n) {
    mlir::Value biased = mlir::arith::AddIOp::create(b, loc, n, bits(127));
    return fromBits(mlir::arith::ShLIOp::create(b, loc, biased, bits(23)));
  }
  struct Scaled {
    mlir::Value exponent, mantissa;
  };
  Scaled scaleForLog(mlir::Value x);
  mlir::Value logOfScaled(mlir::Value exponent, mlir::Value polynomial);
  mlir::Value logOrSpecial(mlir::Value x, mlir::Value y);
  mlir::Value logPolynomial(mlir::Value f);
  QuarterTurns reduceByQuarters(mlir::Value wide);
  QuarterTurns reduceHuge(mlir::Value wide);
};

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_KERNELS_FLOATMATH_H
