//===- LossScale.h - Gradients that fit into f16 ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Micikevicius et al., arXiv 1710.03740, section 3.2: the loss is multiplied by
// a power of two, which falls whenever a gradient is no finite number, and
// grows after many steps where all were.
//
//===----------------------------------------------------------------------===//
#ifndef AX_PASSES_TRAIN_LOSS_LOSSSCALE_H
#define AX_PASSES_TRAIN_LOSS_LOSSSCALE_H

#include "ax/Dialect/TrainingAttrs.h"
#include "ax/Gradients/TensorBuilder.h"

namespace ax {

/// An f32 scalar: 2^(first exponent + `exponent` - `shift`).
mlir::Value getLossScale(TensorBuilder &t, mlir::Value exponent,
                         int64_t shift = 0);

struct LossScale {
  mlir::Value exponent, finiteSteps;
};

/// The states behind a step, whose gradients were finite numbers or not.
LossScale updateLossScale(TensorBuilder &t, LossScale before,
                          mlir::Value isFinite);

} // namespace ax

#endif // AX_PASSES_TRAIN_LOSS_LOSSSCALE_H
