//===- CudnnAttention.h - Which attention cuDNN does ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_CODEGEN_CUDNNATTENTION_H
#define AX_LIB_CODEGEN_CUDNNATTENTION_H

#include "ax/Codegen/LocalPasses.h"

namespace ax::codegen {

/// Whether `op` is attention, or its gradient, that `axl-compose-attention`
/// with these options leaves as it is.
bool isLeftToCudnn(mlir::Operation *op, const ComposeAttentionOptions &options);

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_CUDNNATTENTION_H
