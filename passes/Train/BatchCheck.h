//===- BatchCheck.h - Batches that ranks and time can share -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PASSES_TRAIN_BATCHCHECK_H
#define AX_PASSES_TRAIN_BATCHCHECK_H

#include "ax/Dialect/Ax.h"

namespace ax {

/// Fails for a program that trains where some ranks, or micro-batches, would
/// all do the same because the mesh does not divide the batch.
mlir::LogicalResult checkBatch(ProgramOp program);

} // namespace ax

#endif // AX_PASSES_TRAIN_BATCHCHECK_H
