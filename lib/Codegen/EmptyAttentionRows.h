//===- EmptyAttentionRows.h - Queries that see no key -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_CODEGEN_EMPTYATTENTIONROWS_H
#define AX_LIB_CODEGEN_EMPTYATTENTIONROWS_H

#include "ax/Dialect/Ax.h"

namespace ax::codegen {

/// Attention whose library is given a mask that leaves every query some key:
/// what queries give that have none (`isEmpty`: CudnnMask::isEmpty) is made
/// behind it. Operands and results have the type in which it is computed.
void finishEmptyRows(AttentionOp op, mlir::Value isEmpty);

/// The gradient likewise: of such queries the library is given no gradient, and
/// what they add to those of q, k and v is added behind it.
void finishEmptyRows(AttentionGradientOp op, mlir::Value isEmpty);

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_EMPTYATTENTIONROWS_H
