//===- PoolSizes.h - How many elements a mean is of -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_GRADIENTS_POOLSIZES_H
#define AX_GRADIENTS_POOLSIZES_H

#include "ax/Gradients/TensorBuilder.h"

namespace ax {

/// How many elements the mean of each window is of, in a type of floating
/// point: a constant of the spatial extents of the result, or a number where
/// all windows have as many. Of a window of nothing, which has mean 0, it is 1.
mlir::Value poolSizes(PoolOp op, TensorBuilder &t, mlir::Type element);

} // namespace ax

#endif // AX_GRADIENTS_POOLSIZES_H
