//===- CudnnOps.h - What a card executes with cuDNN -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_CUDA_CUDNNOPS_H
#define AX_RUNTIME_CUDA_CUDNNOPS_H

#include "CudaProducts.h"
#include "CudnnGraph.h"

#include "ax/Runtime/LibraryOps.h"

namespace ax::rt::cuda {

using SharedPlan = std::shared_ptr<const CudnnPlan>;

std::unique_ptr<CudaOp> makeAttention(const AttentionDesc &desc,
                                      SharedPlan plan);
/// `forwards` is the plan of the attention; null where its sums are given.
std::unique_ptr<CudaOp> makeAttentionGradient(const AttentionGradientDesc &desc,
                                              SharedPlan forwards,
                                              SharedPlan backwards,
                                              bool nondeterministic);
std::unique_ptr<CudaOp> makeConvolution(ConvKind kind, SharedPlan plan);

} // namespace ax::rt::cuda

#endif // AX_RUNTIME_CUDA_CUDNNOPS_H
