//===- StridedView.h - Values that others are seen as -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_CODEGEN_STRIDEDVIEW_H
#define AX_LIB_CODEGEN_STRIDEDVIEW_H

#include "ax/Local/Strides.h"
#include "llvm/ADT/DenseSet.h"

namespace ax::codegen {

/// reshape, transpose, slice, broadcast: elements of the operand at other
/// indices.
bool isViewOp(mlir::Operation *op);

/// Returns the bytes that a local tensor takes in memory.
int64_t byteSizeOf(mlir::Value value);

/// Values known to be in memory, whatever makes them.
using MemoryValues = llvm::SmallDenseSet<mlir::Value>;

/// `value` seen through as many view ops as strides can express, up to one
/// that is in memory. `base` is `value` itself when there are none.
StridedView viewOf(mlir::Value value, const MemoryValues &inMemory = {});

/// Returns what reads `value`, or a view of it, and is no view.
llvm::SmallVector<mlir::Operation *> readersOf(mlir::Value value);

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_STRIDEDVIEW_H
