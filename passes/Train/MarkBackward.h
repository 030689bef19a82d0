//===- MarkBackward.h - Forward or backward pass ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PASSES_TRAIN_MARKBACKWARD_H
#define AX_PASSES_TRAIN_MARKBACKWARD_H

#include "ax/Dialect/Ax.h"

namespace ax {

/// Its result jumps: comparisons, indices, whole numbers of floats. What is
/// rounded in another way before a jump is something else behind it.
bool jumps(mlir::Operation *op);

/// Marks as B what neither `forward` nor the program's results depend on, and
/// nothing else but what is U: rewriting shares operations between the two.
/// Jumps that are in the forward pass stay there, though only gradients may
/// need them, and so does what U takes from it.
void markBackward(ProgramOp program, llvm::ArrayRef<mlir::Value> forward);

} // namespace ax

#endif // AX_PASSES_TRAIN_MARKBACKWARD_H
