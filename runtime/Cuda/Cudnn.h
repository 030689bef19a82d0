//===- Cudnn.h - cuDNN, found at run time -----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_CUDA_CUDNN_H
#define AX_RUNTIME_CUDA_CUDNN_H

#include "Card.h"
#include "CudnnPlanCache.h"

#include <cudnn_graph.h>
#include <mutex>

namespace ax::rt::cuda {

/// The functions of libcudnn_graph.so.9. The library stays in the process.
class Cudnn {
public:
  /// The oldest one that is known to do all that is asked of it: 9.16. Up to
  /// 9.15 gradients of attention are wrong where keys are no multiple of 128
  /// (cudnn-frontend hides others with lengths).
  static constexpr size_t oldestVersion = 91600;

  /// Looks in the folders that AXRUN_CUDA_PATH lists, then where the loader
  /// does. An Unsupported error where there is none, or it is too old.
  static llvm::Expected<std::shared_ptr<const Cudnn>> load();

  /// `call(&Cudnn::cudnnCreate, &handle)`: an error with the function's name,
  /// the status' name and what cuDNN said last; Unsupported where the library
  /// says so, else RunFailed.
  template <typename... Params, typename... Args>
  llvm::Error call(LibraryFunction<cudnnStatus_t(Params...)> Cudnn::*member,
                   Args... args) const {
    const auto &called = this->*member;
    cudnnStatus_t status = called.function(args...);
    if (status == CUDNN_STATUS_SUCCESS)
      return llvm::Error::success();
    return describe(called.name, status);
  }

#define AX_CUDNN_FUNCTION(NAME) LibraryFunction<decltype(::NAME)> NAME{#NAME};
#include "CudnnFunctions.def"

private:
  llvm::Error describe(const char *name, cudnnStatus_t status) const;
};

/// A card's own use of the library. Thread-safe.
class CudnnHandle {
public:
  static llvm::Expected<std::shared_ptr<const CudnnHandle>>
  create(const SharedCard &card);
  /// For a card that is not there, as cuDNN describes one
  /// (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION): plans can be made for it, and
  /// not executed. `folder`: where they are kept; empty: nowhere.
  static llvm::Expected<std::shared_ptr<const CudnnHandle>>
  describe(llvm::StringRef properties, const std::string &folder = "");
  ~CudnnHandle();
  CudnnHandle(const CudnnHandle &) = delete;
  CudnnHandle &operator=(const CudnnHandle &) = delete;

  const Cudnn &getLibrary() const { return *library; }
  /// Null for a card that is described.
  cudnnHandle_t get() const { return handle; }
  /// What describes the card; null where it is there.
  cudnnBackendDescriptor_t getDescription() const { return description; }
  const CudnnPlanCache &getPlans() const { return plans; }
  /// Makes the card's context that of the calling thread, where there is one.
  llvm::Error enter() const {
    return card ? card->enter() : llvm::Error::success();
  }
  /// Held while the handle is used to make a plan.
  std::unique_lock<std::mutex> lock() const {
    return std::unique_lock<std::mutex>(mutex);
  }
  /// Puts a plan's work on a stream.
  llvm::Error execute(cudnnBackendDescriptor_t plan,
                      cudnnBackendDescriptor_t arguments,
                      CUstream stream) const;

private:
  CudnnHandle(SharedCard card, std::shared_ptr<const Cudnn> library,
              const std::string &folder, const std::string &cardName);

  SharedCard card;
  std::shared_ptr<const Cudnn> library;
  CudnnPlanCache plans;
  cudnnHandle_t handle = nullptr;
  cudnnBackendDescriptor_t description = nullptr;
  /// The handle is one thread's at a time, and has one stream.
  mutable std::mutex mutex;
};

using SharedCudnn = std::shared_ptr<const CudnnHandle>;

} // namespace ax::rt::cuda

#endif // AX_RUNTIME_CUDA_CUDNN_H
