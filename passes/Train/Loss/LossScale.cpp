//===- LossScale.cpp - Gradients that fit into f16 ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "LossScale.h"

using namespace mlir;
using namespace ax;

/// The first scale is 2^16, it doubles after this many steps, and stays between
/// 1 and 2^24.
static constexpr int64_t firstExponent = 16, growthInterval = 2000,
                         largestExponent = 24;

Value ax::getLossScale(TensorBuilder &t, Value exponent, int64_t shift) {
  Value sum = t.add(exponent, static_cast<double>(firstExponent - shift));
  Value two = t.splat({}, t.b.getF64Type(), 2);
  return t.cast(t.binary(BinaryKind::pow, two, t.cast(sum, t.b.getF64Type())),
                t.b.getF32Type());
}

LossScale ax::updateLossScale(TensorBuilder &t, LossScale before,
                              Value isFinite) {
  auto limited = [&](Value x, BinaryKind kind, int64_t limit) {
    return t.binary(kind, x, t.number(x, static_cast<double>(limit)));
  };
  Value steps = t.add(before.finiteSteps, 1);
  Value grows = t.compare(CompareKind::ge, steps, growthInterval);
  Value larger = limited(t.add(before.exponent, 1), BinaryKind::min,
                         largestExponent - firstExponent);
  Value smaller =
      limited(t.add(before.exponent, -1), BinaryKind::max, -firstExponent);
  Value zero = t.number(steps, 0);
  LossScale after;
  after.exponent =
      t.select(isFinite, t.select(grows, larger, before.exponent), smaller);
  after.finiteSteps = t.select(isFinite, t.select(grows, zero, steps), zero);
  return after;
}
