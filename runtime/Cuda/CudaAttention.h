//===- CudaAttention.h - Attention of a card --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_CUDA_CUDAATTENTION_H
#define AX_RUNTIME_CUDA_CUDAATTENTION_H

#include "CudaProducts.h"

namespace ax::rt::cuda {

/// Whether cuDNN is there, for code that relies on it (GpuTarget::hasCudnn).
bool hasCudnn();

/// What does the attention of all ranks on a card. Thread-safe.
class CudaAttention {
public:
  virtual ~CudaAttention() = default;
  /// As Device::prepare; Unsupported also where there is no library for it.
  virtual llvm::Expected<std::unique_ptr<CudaOp>>
  prepare(const AttentionDesc &desc) = 0;
  virtual llvm::Expected<std::unique_ptr<CudaOp>>
  prepare(const AttentionGradientDesc &desc) = 0;
};

/// Loads nothing before the first attention.
std::unique_ptr<CudaAttention> makeAttention(const SharedCard &card);

} // namespace ax::rt::cuda

#endif // AX_RUNTIME_CUDA_CUDAATTENTION_H
