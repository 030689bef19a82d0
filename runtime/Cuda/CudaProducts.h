//===- CudaProducts.h - Matrix products of a card ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_CUDA_CUDAPRODUCTS_H
#define AX_RUNTIME_CUDA_CUDAPRODUCTS_H

#include "Card.h"

namespace ax::rt::cuda {

/// A library operation of a card.
class CudaOp : public LibraryOp {
public:
  /// As Stream::execute.
  virtual llvm::Error execute(CUstream stream, const DeviceAddress *arguments,
                              DeviceAddress workspace) = 0;
};

/// What does the products of all ranks on a card. Thread-safe.
class CudaProducts {
public:
  virtual ~CudaProducts() = default;
  /// As Device::prepare; Unsupported also where there is no library for it.
  virtual llvm::Expected<std::unique_ptr<CudaOp>>
  prepare(const MatmulDesc &desc) = 0;
  /// As Device::findWorkspace, with errors of `prepare`.
  virtual llvm::Expected<int64_t> findWorkspace(const MatmulDesc &desc) = 0;
  /// As Device::setSpareMemory.
  virtual void setSpareMemory(int64_t bytes) = 0;
};

/// Loads nothing before the first product. With `tf32`, factors of f32 may be
/// rounded to ten bits behind the point.
std::unique_ptr<CudaProducts> makeProducts(const SharedCard &card, bool tf32);

} // namespace ax::rt::cuda

#endif // AX_RUNTIME_CUDA_CUDAPRODUCTS_H
