//===- GpuMath.cpp - Functions of one number, by a GPU's units ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "GpuMath.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace ax::codegen {

Value GpuMath::approximate(StringRef intrinsic, Value x) {
  return LLVM::CallIntrinsicOp::create(b, loc, x.getType(),
                                       b.getStringAttr(intrinsic), x)
      .getResult(0);
}

Value GpuMath::exp2(Value x) {
  return approximate("llvm.nvvm.ex2.approx.ftz.f32", x);
}

/// x log2(e) = n + f with a whole n, the one of `within`, where 2^n is a normal
/// number: what is beyond, infinity for one, stays in f. The number `magic`
/// makes the sum's low bits n + 127, which a shift makes 2^n of.
FloatMath::Exponential GpuMath::exponential(Value x, Value within, Value low) {
  // log2(e) rounded to f32, and what that took, which has the same sign: so
  // infinities stay what they are.
  constexpr double log2OfE = 1.44269504088896341,
                   rounded = 1.44269502162933349609375;
  Value magic = num(12582912.0 + 127.0);
  Value shifted = exactFma(within, num(rounded), magic);
  Value n = sub(shifted, magic);
  Value f = exactFma(x, num(rounded), neg(n));
  f = exactFma(x, num(log2OfE - rounded), f);
  if (low)
    f = exactFma(low, num(rounded), f);
  Value power = arith::ShLIOp::create(b, loc, toBits(shifted), bits(23));
  return {exp2(f), fromBits(power)};
}

/// n is -126 at least.
Value GpuMath::notTooLow(Value x) {
  return arith::MaxNumFOp::create(b, loc, x, num(-87.33));
}

FloatMath::Exponential GpuMath::exponential(Value x, Value low) {
  return exponential(x, notTooLow(x), low);
}

/// n is 127 at most.
Value GpuMath::exp(Value x) {
  Value within = arith::MinNumFOp::create(b, loc, notTooLow(x), num(88.02));
  Exponential e = exponential(x, within, {});
  return mul(e.factor, e.power);
}

Value GpuMath::times(Value x, Exponential e) {
  return mul(mul(x, e.factor), e.power);
}

Value GpuMath::onePlus(Exponential e) {
  return exactFma(e.factor, e.power, num(1.0));
}

Value GpuMath::quotient(Value x, Value y) {
  return mul(x, approximate("llvm.nvvm.rcp.approx.ftz.f", y));
}

} // namespace ax::codegen
