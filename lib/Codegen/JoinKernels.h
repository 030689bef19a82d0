//===- JoinKernels.h - Kernels that are launched as one ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_CODEGEN_JOINKERNELS_H
#define AX_LIB_CODEGEN_JOINKERNELS_H

#include "ax/Local/Local.h"

namespace ax::codegen {

/// Makes one kernel of two that read the same large tensors, and of which
/// neither reads the other's results: both element by element, or both sums (or
/// extremes) along the same dimensions, where what the second makes is little
/// beside the block's arguments. It stands where the first did.
void joinSiblings(mlir::Block &block);

/// Makes one kernel of several in the place of one of them: all that they read
/// is there, and nothing before it needs what they make. All of them, or none,
/// are done once.
FusionOp joinAt(FusionOp place, llvm::ArrayRef<FusionOp> members);

/// Of all of them together.
int64_t totalBytesOf(mlir::ValueRange values);

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_JOINKERNELS_H
