//===- CublasDescriptors.h - What cuBLASLt is told of products --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_CUDA_CUBLASDESCRIPTORS_H
#define AX_RUNTIME_CUDA_CUBLASDESCRIPTORS_H

#include "ColumnProduct.h"
#include "CublasLt.h"

namespace ax::rt::cuda {

/// A descriptor, which is destroyed with this.
template <typename T>
class Descriptor {
public:
  using Destroy = LibraryFunction<cublasStatus_t(T)> CublasLt::*;
  Descriptor(const CublasLt &library, Destroy destroy)
      : library(library), destroy(destroy) {}
  ~Descriptor() {
    if (value)
      llvm::consumeError(library.call(destroy, value));
  }
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;

  template <typename... Params, typename... Args>
  llvm::Error
  create(LibraryFunction<cublasStatus_t(T *, Params...)> CublasLt::*function,
         Args... args) {
    T made = nullptr;
    if (llvm::Error error = library.call(function, &made, args...))
      return error;
    value = made;
    return llvm::Error::success();
  }
  /// Sets an attribute, whose type is that of the number.
  template <typename Attribute, typename Number>
  llvm::Error
  set(LibraryFunction<cublasStatus_t(T, Attribute, const void *, size_t)>
          CublasLt::*function,
      Attribute attribute, Number number) {
    return library.call(function, value, attribute, &number, sizeof(number));
  }
  T get() const { return value; }

private:
  const CublasLt &library;
  Destroy destroy;
  T value = nullptr;
};

class Layout : public Descriptor<cublasLtMatrixLayout_t> {
public:
  explicit Layout(const CublasLt &library)
      : Descriptor(library, &CublasLt::cublasLtMatrixLayoutDestroy) {}
  llvm::Error make(const ColumnMatrix &matrix, int64_t batch) {
    if (llvm::Error error =
            create(&CublasLt::cublasLtMatrixLayoutCreate, toCuda(matrix.dtype),
                   static_cast<uint64_t>(matrix.rows),
                   static_cast<uint64_t>(matrix.columns), matrix.leading))
      return error;
    auto setter = &CublasLt::cublasLtMatrixLayoutSetAttribute;
    if (llvm::Error error = set(setter, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                static_cast<int32_t>(batch)))
      return error;
    return set(setter, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
               matrix.batchStride);
  }
  static cudaDataType_t toCuda(DType dtype) {
    switch (dtype) {
    case DType::F16:
      return CUDA_R_16F;
    case DType::BF16:
      return CUDA_R_16BF;
    case DType::F64:
      return CUDA_R_64F;
    case DType::F8E4M3FN:
      return CUDA_R_8F_E4M3;
    case DType::F8E5M2:
      return CUDA_R_8F_E5M2;
    case DType::I8:
      return CUDA_R_8I;
    case DType::I32:
      return CUDA_R_32I;
    default:
      return CUDA_R_32F;
    }
  }
};

} // namespace ax::rt::cuda

#endif // AX_RUNTIME_CUDA_CUBLASDESCRIPTORS_H
