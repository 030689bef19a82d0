//===- CublasLt.h - cuBLASLt, found at run time -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_CUDA_CUBLASLT_H
#define AX_RUNTIME_CUDA_CUBLASLT_H

#include "Card.h"

#include <cublasLt.h>

namespace ax::rt::cuda {

/// The functions of libcublasLt.so, of which version 12 has all and the same
/// types, too. The library stays in the process.
class CublasLt {
public:
  /// Looks in the folders that AXRUN_CUDA_PATH lists, then where the loader
  /// does. An Unsupported error where there is none, or it lacks a function.
  static llvm::Expected<std::shared_ptr<const CublasLt>> load();

  /// `call(&CublasLt::cublasLtCreate, &handle)`: an error with the function's
  /// name, the status' name and its text; Unsupported where the library says
  /// so, else RunFailed.
  template <typename... Params, typename... Args>
  llvm::Error call(LibraryFunction<cublasStatus_t(Params...)> CublasLt::*member,
                   Args... args) const {
    const auto &called = this->*member;
    cublasStatus_t status = called.function(args...);
    if (status == CUBLAS_STATUS_SUCCESS)
      return llvm::Error::success();
    return describe(called.name, status);
  }

#define AX_CUBLASLT_FUNCTION(NAME)                                             \
  LibraryFunction<decltype(::NAME)> NAME{#NAME};
#include "CublasLtFunctions.def"

private:
  llvm::Error describe(const char *name, cublasStatus_t status) const;
};

/// A card's own use of the library. Thread-safe.
class CublasHandle {
public:
  static llvm::Expected<std::shared_ptr<const CublasHandle>>
  create(const SharedCard &card);
  ~CublasHandle();
  CublasHandle(const CublasHandle &) = delete;
  CublasHandle &operator=(const CublasHandle &) = delete;

  const CublasLt &getLibrary() const { return *library; }
  /// As the library's functions whose first argument is the handle, on the
  /// card's context.
  template <typename... Params, typename... Args>
  llvm::Error call(LibraryFunction<cublasStatus_t(cublasLtHandle_t, Params...)>
                       CublasLt::*member,
                   Args... args) const {
    if (llvm::Error error = card->enter())
      return error;
    return library->call(member, handle, args...);
  }

private:
  CublasHandle(SharedCard card, std::shared_ptr<const CublasLt> library)
      : card(std::move(card)), library(std::move(library)) {}

  SharedCard card;
  std::shared_ptr<const CublasLt> library;
  cublasLtHandle_t handle = nullptr;
};

} // namespace ax::rt::cuda

#endif // AX_RUNTIME_CUDA_CUBLASLT_H
