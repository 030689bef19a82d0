//===- Decompose.h - Softmax and norms as reductions ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_CODEGEN_KERNELS_DECOMPOSE_H
#define AX_CODEGEN_KERNELS_DECOMPOSE_H

#include "ax/Local/Local.h"

namespace ax::codegen {

/// Puts reductions and element-wise ops, of f32 at least, in the place of a
/// softmax, a norm or an arg_reduce; of what is neither, leaves all as it is.
void decomposeRows(mlir::Operation *op);

/// The same for all of a fusion; and reductions and scans of f16 and bf16 are
/// done in f32.
void decompose(FusionOp fusion);

/// The attribute of an exp whose operand is not above 0 and whose subnormal
/// results are of no use: the rows of softmax.
inline constexpr llvm::StringLiteral kFlushed = "ax.flushed";

} // namespace ax::codegen

#endif // AX_CODEGEN_KERNELS_DECOMPOSE_H
