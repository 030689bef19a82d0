//===- Scatters.h - What is scattered, and where to -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_CODEGEN_KERNELS_SCATTERS_H
#define AX_CODEGEN_KERNELS_SCATTERS_H

#include "Emitter.h"

#include "llvm/ADT/STLExtras.h"

namespace ax::codegen {

struct Emitter::Scatter {
  mlir::Operation *op;
  ScatterKind kind;
  Value operand;
  /// Of the result, and of the updates.
  llvm::ArrayRef<int64_t> shape, sizes;
  /// Dimensions of the result that indices choose from, from the first on, and
  /// those in which updates of one place differ.
  unsigned firstRowDim, numRowDims, numOrdered;
  /// Whether these tell to which row an update goes.
  bool goTogether;
  llvm::function_ref<Indices(llvm::ArrayRef<IndexExpr>)> placeOf;
  llvm::function_ref<Value(llvm::ArrayRef<IndexExpr>)> valueOf;

  mlir::Type type() const {
    return tensorType(op->getResult(0)).getElementType();
  }
  llvm::ArrayRef<int64_t> rowShape() const {
    return shape.slice(firstRowDim, numRowDims);
  }
  llvm::SmallVector<int64_t> columnShape() const {
    return without(shape, firstRowDim, numRowDims);
  }
  /// Elements of a column that lie next to each other, behind the rows.
  int64_t countBehind() const {
    return llvm::product_of(shape.drop_front(firstRowDim + numRowDims));
  }
  llvm::ArrayRef<int64_t> orderedSizes() const {
    return sizes.slice(firstRowDim, numOrdered);
  }
  llvm::SmallVector<int64_t> columnSizes() const {
    return without(sizes, firstRowDim, numOrdered);
  }
  bool isOrdered(unsigned d) const {
    return d >= firstRowDim && d < firstRowDim + numOrdered;
  }

  static llvm::SmallVector<int64_t> without(llvm::ArrayRef<int64_t> all,
                                            unsigned first, unsigned count) {
    llvm::SmallVector<int64_t> some(all.take_front(first));
    llvm::append_range(some, all.drop_front(first + count));
    return some;
  }
  /// Indices of rows, or of updates in order, put among those of columns.
  Indices join(llvm::ArrayRef<IndexExpr> rows,
               llvm::ArrayRef<IndexExpr> columns) const {
    Indices all(columns.take_front(firstRowDim));
    llvm::append_range(all, rows);
    llvm::append_range(all, columns.drop_front(firstRowDim));
    return all;
  }
};

/// The part of an iteration: rows in units of a few that lie next to each
/// other, of which it has every `parts`th one; of these some columns.
struct Emitter::Share {
  int64_t rows, unit, parts, columns;
  IndexExpr rowPart, firstColumn;
};

} // namespace ax::codegen

#endif // AX_CODEGEN_KERNELS_SCATTERS_H
