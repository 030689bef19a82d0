//===- CudnnEngines.h - Which of cuDNN's kernels does a graph ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_CUDA_CUDNNENGINES_H
#define AX_RUNTIME_CUDA_CUDNNENGINES_H

#include "CudnnGraph.h"

namespace ax::rt::cuda {

/// Makes a plan of what `setWhat` says that it is of: an engine's
/// configuration, or what was kept.
llvm::Expected<std::unique_ptr<CudnnPlan>>
makePlan(const SharedCudnn &cudnn,
         llvm::function_ref<llvm::Error(CudnnDescriptor &)> setWhat);

/// Returns the first plan that can be made within `limits` of what the
/// heuristic names, whose order is that of expected speed; Unsupported where
/// there is none.
llvm::Expected<std::unique_ptr<CudnnPlan>>
findPlan(const SharedCudnn &cudnn, const CudnnDescriptor &graph,
         const EngineLimits &limits);

} // namespace ax::rt::cuda

#endif // AX_RUNTIME_CUDA_CUDNNENGINES_H
