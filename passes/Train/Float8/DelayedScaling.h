//===- DelayedScaling.h - Scales of what came before ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// As in Transformer Engine's DelayedScaling: a tensor is multiplied by a scale
// before it is rounded to eight bits, so that the largest magnitude (amax) that
// it had in the steps before becomes the largest number of the type. So nobody
// waits for the tensor to be whole before it is rounded.
//
// What is kept of a tensor is one state: [scale, amax of the last step, of the
// one before, ...], all zero at first, which is a scale of 1.
//
//===----------------------------------------------------------------------===//
#ifndef AX_PASSES_TRAIN_FLOAT8_DELAYEDSCALING_H
#define AX_PASSES_TRAIN_FLOAT8_DELAYEDSCALING_H

#include "ax/Gradients/TensorBuilder.h"
#include "ax/Passes/Training.h"

namespace ax {

mlir::RankedTensorType scalingStateType(mlir::MLIRContext *context,
                                        const Float8Recipe &recipe);

/// The scale that a state has, an f32 scalar.
mlir::Value scaleOf(TensorBuilder &t, mlir::Value state);

/// The largest magnitude of `value`, an f32 scalar.
mlir::Value amaxOf(TensorBuilder &t, mlir::Value value);

/// The state behind a step in which the tensor had `amax`. The next scale is
/// largest / (the largest amax of all that are kept, or the last one) /
/// 2^margin and stays what it was where that amax is 0 or no finite number;
/// where it is too small for that, the scale is the largest f32. `step`, the
/// number of steps before, is null where a new scale is made in each.
mlir::Value nextState(TensorBuilder &t, const Float8Recipe &recipe,
                      double largest, mlir::Value state, mlir::Value amax,
                      mlir::Value step);

} // namespace ax

#endif // AX_PASSES_TRAIN_FLOAT8_DELAYEDSCALING_H
