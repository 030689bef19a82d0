//===- CudnnAttentionGraphs.h - Attention, as cuDNN knows it ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_CUDA_CUDNNATTENTIONGRAPHS_H
#define AX_RUNTIME_CUDA_CUDNNATTENTIONGRAPHS_H

#include "CudnnGraph.h"

#include "ax/Runtime/LibraryOps.h"

namespace ax::rt::cuda {

/// The tensors of both graphs, by number: those of the descriptions, and
///
///   Stats     log(sum(exp(scores))) of each query [batch, heads, S, 1] in f32,
///             which the first graph gives and the second reads
///   Delta     sum(out gradient) of each query, likewise, for the second alone
///   DQSums    dq in f32, dense, where it is added up in any order
///
/// and Mask, if there is one, with 1 along dimensions in which it is the same.
/// Scale, Hidden (-inf, where attention is causal), Window and One are numbers.
namespace attention {
enum Number : int64_t {
  Q = 1,
  K,
  V,
  Out,
  Mask,
  Stats,
  Scale,
  Hidden,
  Gradient,
  Delta,
  One,
  DQ,
  DQSums,
  DK,
  DV,
  Window
};
} // namespace attention

/// Returns what is not left to cuDNN; empty: it may be.
std::string findObstacle(const AttentionDesc &desc);
std::string findObstacle(const AttentionGradientDesc &desc);

/// Makes the plans, of what has no obstacle; Unsupported where cuDNN knows no
/// kernel.
llvm::Expected<std::unique_ptr<CudnnPlan>>
planAttention(const SharedCudnn &cudnn, const AttentionDesc &desc);
llvm::Expected<std::unique_ptr<CudnnPlan>>
planAttentionGradient(const SharedCudnn &cudnn,
                      const AttentionGradientDesc &desc, bool nondeterministic);

} // namespace ax::rt::cuda

#endif // AX_RUNTIME_CUDA_CUDNNATTENTIONGRAPHS_H
