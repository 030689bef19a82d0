//===- LearningRate.h - A schedule as operations ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PASSES_TRAIN_OPTIMIZER_LEARNINGRATE_H
#define AX_PASSES_TRAIN_OPTIMIZER_LEARNINGRATE_H

#include "ax/Gradients/TensorBuilder.h"
#include "ax/Passes/Training.h"

namespace ax {

/// What the learning rate is multiplied with in step `step`, counted from 1;
/// f64 scalars both.
mlir::Value learningRateFactor(TensorBuilder &t,
                               const LearningRateSchedule &schedule,
                               mlir::Value step);

} // namespace ax

#endif // AX_PASSES_TRAIN_OPTIMIZER_LEARNINGRATE_H
