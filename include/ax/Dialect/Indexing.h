//===- Indexing.h - Indices of gathers and scatters -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_DIALECT_INDEXING_H
#define AX_DIALECT_INDEXING_H

#include "ax/Dialect/Ax.h"

namespace ax {

/// The number of the operand in which gathers and scatters have their indices.
inline constexpr unsigned indicesOperand = 1;

/// Returns into dimensions of which sizes a gather or scatter has indices, such
/// that element i of them is one into `result[i mod result.size()]`; nothing
/// for other operations.
std::optional<llvm::SmallVector<int64_t>> getIndexedSizes(mlir::Operation *op);

/// Which of the constant indices that `op` has is out of range; nothing when
/// none is, or they are not known.
std::optional<std::string> findIndexFault(mlir::Operation *op);

} // namespace ax

#endif // AX_DIALECT_INDEXING_H
