//===- TransposedNorms.h - Norms where their operand lies -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_CODEGEN_TRANSPOSEDNORMS_H
#define AX_LIB_CODEGEN_TRANSPOSEDNORMS_H

#include "ax/Dialect/Ax.h"

namespace ax::codegen {

/// Replaces a norm (over channels, groups of them or all) that would read
/// across memory, its operand being made by a transpose, by reductions and
/// element-wise operations in the order in which that lies, and a transpose
/// behind them. Others are left alone.
void normalizeInMemoryOrder(mlir::Operation *op);

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_TRANSPOSEDNORMS_H
