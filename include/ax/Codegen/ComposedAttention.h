//===- ComposedAttention.h - Attention without cuDNN ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_CODEGEN_COMPOSEDATTENTION_H
#define AX_CODEGEN_COMPOSEDATTENTION_H

#include "ax/Dialect/Ax.h"
#include "ax/Support/Target.h"

namespace ax::codegen {

/// Returns the names of the plan's attention, and of its gradients, that code
/// for `target` makes of products and a softmax, and would leave to cuDNN where
/// that is there.
llvm::SmallVector<std::string> findComposedAttention(PlanOp plan,
                                                     const GpuTarget &target);

} // namespace ax::codegen

#endif // AX_CODEGEN_COMPOSEDATTENTION_H
