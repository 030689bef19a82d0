//===- LearningRate.h - A schedule as operations ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PASSES_TRAIN_OPTIMIZER_LEARNINGRATE_H
#define AX_PASSES_TRAIN_OPTIMIZER_LEARNINGRATE_H

#include "../TensorBuilder.h"

namespace ax {

/// `constant`, `linear(warmup=W,steps=N,final=F)` or `cosine(...)`: the
/// learning rate grows over the first W steps, then goes down, so that
/// its F-th part is left after N of them.
struct LearningRateSchedule {
  enum class Decay { None, Linear, Cosine };
  Decay decay = Decay::None;
  int64_t warmup = 0;
  int64_t steps = 0;
  double final = 0;

  static llvm::Expected<LearningRateSchedule> parse(llvm::StringRef text);
};

/// What the learning rate is multiplied with in step `step`, counted from 1;
/// f64 scalars both.
mlir::Value learningRateFactor(TensorBuilder &t,
                               const LearningRateSchedule &schedule,
                               mlir::Value step);

} // namespace ax

#endif // AX_PASSES_TRAIN_OPTIMIZER_LEARNINGRATE_H
