//===- Indexing.h - Indices of gathers and scatters -------------*- C++ -*-===//
#ifndef AX_DIALECT_INDEXING_H
#define AX_DIALECT_INDEXING_H

#include "ax/Dialect/Ax.h"

namespace ax {

/// Where gathers and scatters have their indices.
inline constexpr unsigned indicesOperand = 1;

/// For a gather or scatter: element i of its indices is one into a dimension of
/// size `result[i mod result.size()]`. Nothing for other operations.
std::optional<llvm::SmallVector<int64_t>> getIndexedSizes(mlir::Operation *op);

/// Which of the constant indices that `op` has is out of range; nothing when
/// none is, or they are not known.
std::optional<std::string> findIndexFault(mlir::Operation *op);

} // namespace ax

#endif // AX_DIALECT_INDEXING_H
