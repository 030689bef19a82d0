//===- LearningRate.cpp - A schedule as operations ------------------------===//
#include "LearningRate.h"

#include <cmath>

using namespace mlir;
using namespace ax;

Value ax::learningRateFactor(TensorBuilder &t,
                             const LearningRateSchedule &schedule, Value step) {
  Type f64 = t.b.getF64Type();
  // PyTorch's schedulers count steps from 0.
  Value done = t.add(step, -1);
  auto scalar = [&](double x) { return t.splat({}, f64, x); };
  Value result = scalar(1);
  auto limited = [&](Value x) {
    return t.binary(BinaryKind::max, t.binary(BinaryKind::min, x, scalar(1)),
                    scalar(0));
  };
  if (schedule.decay != LearningRateSchedule::Decay::None) {
    Value part = limited(
        t.mul(t.add(done, -static_cast<double>(schedule.warmup)),
              1.0 / static_cast<double>(schedule.steps - schedule.warmup)));
    Value remaining =
        schedule.decay == LearningRateSchedule::Decay::Linear
            ? t.sub(scalar(1), part)
            : t.mul(t.add(t.unary(UnaryKind::cos, t.mul(part, M_PI)), 1), 0.5);
    result = t.add(t.mul(remaining, 1 - schedule.final), schedule.final);
  }
  if (schedule.warmup > 0)
    result =
        t.mul(result,
              limited(t.mul(step, 1.0 / static_cast<double>(schedule.warmup))));
  return result;
}
