//===- LearningRate.h - A schedule as operations ----------------*- C++ -*-===//
#ifndef AX_PASSES_TRAIN_LEARNINGRATE_H
#define AX_PASSES_TRAIN_LEARNINGRATE_H

#include "Optimizer.h"
#include "TensorBuilder.h"

namespace ax {

/// What the learning rate is multiplied with in step `step`, counted from 1;
/// f64 scalars both.
mlir::Value learningRateFactor(TensorBuilder &t,
                               const LearningRateSchedule &schedule,
                               mlir::Value step);

} // namespace ax

#endif // AX_PASSES_TRAIN_LEARNINGRATE_H
