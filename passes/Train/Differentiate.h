//===- Differentiate.h - Reverse mode over a program ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PASSES_TRAIN_DIFFERENTIATE_H
#define AX_PASSES_TRAIN_DIFFERENTIATE_H

#include "ax/Dialect/Ax.h"

namespace ax {

struct StateGradient {
  StateOp state;
  mlir::Value gradient;
};

/// Appends to the program's block what computes the gradient of `loss` (a
/// scalar float) in every trainable state that it depends on, in the order of
/// the plan's states. Backward operations have `ax.action = "B"` and stage and
/// location of the forward operation. Failures are diagnostics.
mlir::FailureOr<llvm::SmallVector<StateGradient>>
differentiate(ProgramOp program, mlir::Value loss);

} // namespace ax

#endif // AX_PASSES_TRAIN_DIFFERENTIATE_H
