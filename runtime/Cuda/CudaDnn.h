//===- CudaDnn.h - Attention and convolutions of a card ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_CUDA_CUDADNN_H
#define AX_RUNTIME_CUDA_CUDADNN_H

#include "CudaProducts.h"

namespace ax::rt::cuda {

/// Why cuDNN is not there, for code that relies on it (GpuTarget::hasCudnn);
/// empty where it is.
std::string whyNoCudnn();

/// What does the attention and the convolutions of all ranks on a card.
/// Thread-safe.
class CudaDnn {
public:
  virtual ~CudaDnn() = default;
  /// As Device::prepare; Unsupported also where there is no library for it.
  virtual llvm::Expected<std::unique_ptr<CudaOp>>
  prepare(const AttentionDesc &desc) = 0;
  virtual llvm::Expected<std::unique_ptr<CudaOp>>
  prepare(const AttentionGradientDesc &desc) = 0;
  virtual llvm::Expected<std::unique_ptr<CudaOp>>
  prepare(const ConvDesc &desc) = 0;
};

/// Loads nothing before the first of them. With `tf32`, factors of f32 may be
/// rounded to ten bits behind the point.
std::unique_ptr<CudaDnn> makeDnn(const SharedCard &card,
                                 const DeviceOptions &options);

} // namespace ax::rt::cuda

#endif // AX_RUNTIME_CUDA_CUDADNN_H
