//===- Random.h - What random numbers depend on -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_DIALECT_RANDOM_H
#define AX_DIALECT_RANDOM_H

#include "ax/Dialect/Ax.h"
#include "ax/Dialect/StateNames.h"

namespace ax {

/// Whether the op's results are others with another seed or in another step.
inline bool isRandom(mlir::Operation *op) {
  return mlir::isa<DropoutOp, UniformOp>(op);
}

} // namespace ax

#endif // AX_DIALECT_RANDOM_H
