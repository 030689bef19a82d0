//===- LearningRate.cpp - A schedule as operations ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "LearningRate.h"

#include "../NumberTaker.h"
#include "ax/Support/Error.h"
#include "ax/Support/Nearest.h"

#include <cmath>

using namespace mlir;
using namespace ax;

llvm::Expected<LearningRateSchedule>
LearningRateSchedule::parse(llvm::StringRef text) {
  llvm::Expected<CallExpression> call = CallExpression::parse(text);
  if (!call)
    return call.takeError();
  LearningRateSchedule result;
  result.text = text.str();
  NumberTaker number(*call);
  if (call->name == "linear")
    result.decay = Decay::Linear;
  else if (call->name == "cosine")
    result.decay = Decay::Cosine;
  else if (call->name != "constant")
    return makeErrorf(
        ExitCode::Usage,
        "there is no learning-rate schedule '{0}', but constant, "
        "linear, cosine{1}",
        call->name,
        suggestNearest(call->name, {"constant", "linear", "cosine"}));
  number.take("warmup", result.warmup);
  if (result.decay != Decay::None) {
    number.take("steps", result.steps);
    number.take("final", result.final, 0, 1);
  }
  if (llvm::Error error = number.finish({}))
    return error;
  if (result.decay != Decay::None && result.steps <= result.warmup)
    return makeErrorf(ExitCode::Usage,
                      "{0}: steps={1} is not more than warmup={2}: give "
                      "steps=N, the step at which it ends",
                      call->name, result.steps, result.warmup);
  return result;
}

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
