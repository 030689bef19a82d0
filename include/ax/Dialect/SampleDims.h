//===- SampleDims.h - Where the batch is in results -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_DIALECT_SAMPLEDIMS_H
#define AX_DIALECT_SAMPLEDIMS_H

#include "ax/Dialect/Ax.h"

namespace ax {

/// Returns for each result of a program without stages the dimension that
/// counts the samples of a batch: what belongs to sample i is the i-th of so
/// many equal parts of it. Follows the first dimension of the inputs that take
/// batches through the operations. Nothing where the batch is in no dimension,
/// is not the slowest part of one, or is in several (`x x^T`). In a batch of 1
/// it may be in any of neighbouring dimensions of 1, for all that is known.
llvm::SmallVector<std::optional<int64_t>> findSampleDims(ProgramOp program);
/// Likewise for values of the program, and `numParts` equal parts of the batch
/// in place of its samples.
llvm::SmallVector<std::optional<int64_t>>
findPartDims(ProgramOp program, mlir::ValueRange values, int64_t numParts);

} // namespace ax

#endif // AX_DIALECT_SAMPLEDIMS_H
