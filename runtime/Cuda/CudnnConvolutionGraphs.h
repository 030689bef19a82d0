//===- CudnnConvolutionGraphs.h - Convolutions of cuDNN ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_CUDA_CUDNNCONVOLUTIONGRAPHS_H
#define AX_RUNTIME_CUDA_CUDNNCONVOLUTIONGRAPHS_H

#include "CudnnGraph.h"

#include "ax/Runtime/LibraryOps.h"

namespace ax::rt::cuda {

/// The tensors of the graph, by number: what the description calls so.
namespace convolution {
enum Number : int64_t { X = 1, W, Y };
} // namespace convolution

/// Returns what is not left to cuDNN; empty: it may be.
std::string findObstacle(const ConvDesc &desc);

/// Makes the plan, of what has no obstacle; Unsupported where cuDNN knows no
/// kernel. With `tf32`, factors of f32 may be rounded to ten bits behind the
/// point.
llvm::Expected<std::unique_ptr<CudnnPlan>>
planConvolution(const SharedCudnn &cudnn, const ConvDesc &desc, bool tf32);

} // namespace ax::rt::cuda

#endif // AX_RUNTIME_CUDA_CUDNNCONVOLUTIONGRAPHS_H
