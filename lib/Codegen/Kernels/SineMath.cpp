//===- SineMath.cpp - Sine and cosine -------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "FloatMath.h"

using namespace mlir;

namespace ax::codegen {

/// Works in f64, whose 53 bits leave f32 enough after the multiples of pi / 2
/// are taken away.
FloatMath::QuarterTurns FloatMath::reduceByQuarters(Value wide) {
  Value n =
      math::RoundEvenOp::create(b, loc, mul(wide, num(0.636619772367581343)));
  // No negative zero, which would lose the sign of x = -0.
  n = add(n, num(0.0));
  Value r = fma(n, num(-1.57079632679489655800), wide);
  return {n, fma(n, num(-6.12323399573676603587e-17), r)};
}

/// The same from 2^50 on, where n has more bits than f64, by M. Payne and R.
/// Hanek (1983): x 2 / pi modulo 4 needs only those bits of 2 / pi that x's
/// exponent moves near the point. They are cut into pieces, of 25 bits and then
/// of 29, whose products with the 24 bits of x are exact.
FloatMath::QuarterTurns FloatMath::reduceHuge(Value wide) {
  constexpr double pieces[] = {2.5682553250749862e-08, 1.6153797803925804e-17,
                               7.6967048473567051e-26, 1.6682867657019525e-34,
                               1.1588713349707668e-43, 3.7204748629602008e-53};
  Value size = abs(wide);
  Value from79 = less(num(0x1p79), size), from108 = less(num(0x1p108), size);
  auto product = [&](int i) {
    Value piece = select(from79, num(pieces[i + 1]), num(pieces[i]));
    return mul(wide, select(from108, num(pieces[i + 2]), piece));
  };
  auto modulo4 = [&](Value v) {
    Value whole = math::FloorOp::create(b, loc, mul(v, num(0.25)));
    return fma(whole, num(-4.0), v);
  };
  Value high = modulo4(product(0)), middle = modulo4(product(1));
  Value low = modulo4(product(2));
  Value n = math::RoundEvenOp::create(b, loc, add(add(high, middle), low));
  Value r = add(add(add(sub(high, n), middle), low), product(3));
  return {n, mul(r, num(1.57079632679489655800))};
}

FloatMath::QuarterTurns FloatMath::reduceTurns(Value wide) {
  QuarterTurns near = reduceByQuarters(wide), far = reduceHuge(wide);
  Value isNear = less(abs(wide), num(0x1p50));
  return {select(isNear, near.n, far.n), select(isNear, near.rest, far.rest)};
}

Value FloatMath::sine(Value x, bool cosine) {
  FloatMath d(b, b.getF64Type());
  Value wide = arith::ExtFOp::create(b, loc, d.type, x);
  auto [n, r] = d.reduceTurns(wide);
  Value t = d.mul(r, r);
  Value s =
      d.polynomial(t, {1.0, -1.66666666416070808e-01, 8.33332938359164326e-03,
                       -1.98393340856952739e-04, 2.71830425160036271e-06});
  s = d.mul(r, s);
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

} // namespace ax::codegen
