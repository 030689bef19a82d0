//===- DelayedScaling.cpp - Scales of what came before --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "DelayedScaling.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace ax;

RankedTensorType ax::scalingStateType(MLIRContext *context,
                                      const Float8Recipe &recipe) {
  return RankedTensorType::get({1 + recipe.history}, Float32Type::get(context));
}

/// 0, which a state has at first, is 1.
Value ax::scaleOf(TensorBuilder &t, Value state) {
  Value scale = t.reshape(t.slice(state, 0, 0, 1), {});
  return t.select(t.compare(CompareKind::gt, scale, 0), scale, 1);
}

Value ax::amaxOf(TensorBuilder &t, Value value) {
  return t.reduce(ReduceOpKind::max, t.unary(UnaryKind::abs, value),
                  dimsFrom(0, tensorType(value).getRank()),
                  /*keepDims=*/false);
}

Value ax::nextState(TensorBuilder &t, const Float8Recipe &recipe,
                    double largest, Value state, Value amax, Value step) {
  SmallVector<Value> amaxes{t.reshape(amax, {1})};
  if (recipe.history > 1)
    amaxes.push_back(t.slice(state, 0, 1, recipe.history - 1));
  Value all = amaxes.size() > 1
                  ? ConcatOp::create(t.b, amaxes, /*dim=*/0).getResult()
                  : amaxes.front();
  Value known = recipe.mostRecent ? amax
                                  : t.reduce(ReduceOpKind::max, all, {0},
                                             /*keepDims=*/false);
  Value scale = scaleOf(t, state);
  Value exact = t.div(t.number(known, largest), known);
  if (recipe.margin != 0)
    exact = t.mul(exact, std::ldexp(1.0, -static_cast<int>(recipe.margin)));
  constexpr double most = std::numeric_limits<float>::max();
  Value limited = t.binary(BinaryKind::min, exact, t.number(exact, most));
  Value isUsable =
      t.binary(BinaryKind::logical_and, t.compare(CompareKind::gt, known, 0),
               t.compare(CompareKind::lt, known,
                         std::numeric_limits<double>::infinity()));
  Value next = t.select(isUsable, limited, scale);
  if (step) {
    Value since =
        t.binary(BinaryKind::floor_mod, step,
                 t.number(step, static_cast<double>(recipe.interval)));
    next = t.select(t.compare(CompareKind::eq, since, 0), next, scale);
  }
  return ConcatOp::create(t.b, ValueRange{t.reshape(next, {1}), all},
                          /*dim=*/0);
}
