//===- StridedView.h - Values that others are seen as -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_CODEGEN_STRIDEDVIEW_H
#define AX_LIB_CODEGEN_STRIDEDVIEW_H

#include "ax/Dialect/Ax.h"
#include "llvm/ADT/DenseSet.h"

#include <optional>

namespace ax::codegen {

/// reshape, transpose, slice, broadcast: elements of the operand at other
/// indices.
bool isViewOp(mlir::Operation *op);

/// Element (i...) of the value is element offset + sum(i * strides) of the
/// dense row-major `base`. Strides are >= 0.
struct StridedView {
  mlir::Value base;
  int64_t offset = 0;
  llvm::SmallVector<int64_t> sizes, strides;

  bool isDense() const;
};

/// Returns the bytes that a local tensor takes in memory.
int64_t byteSizeOf(mlir::Value value);

/// Values known to be in memory, whatever makes them.
using MemoryValues = llvm::SmallDenseSet<mlir::Value>;

/// `value` seen through as many view ops as strides can express, up to one
/// that is in memory. `base` is `value` itself when there are none.
StridedView viewOf(mlir::Value value, const MemoryValues &inMemory = {});

/// Where `made` lies in the whole to which transposes, reshapes and
/// concatenations, each the only reader of what it reads, move it. Nothing when
/// strides cannot express it, or none of these has what `isWhole`.
std::optional<StridedView>
whereMoved(mlir::Value made, llvm::function_ref<bool(mlir::Value)> isWhole);

/// Strides under which `sizes` have the same elements in the same order as
/// `newSizes`; nothing when there are none.
std::optional<llvm::SmallVector<int64_t>>
reshapeStrides(llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> strides,
               llvm::ArrayRef<int64_t> newSizes);

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_STRIDEDVIEW_H
