//===- Descriptors.h - What the simulated cuBLASLt is told ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_SIMCUBLAS_DESCRIPTORS_H
#define AX_TEST_SIMCUBLAS_DESCRIPTORS_H

#include <cublasLt.h>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

/// Marks an entry point: nothing else is seen from outside.
#define SIMCUBLAS_ENTRY extern "C" __attribute__((visibility("default")))

namespace simcublas {

/// Begins a call: the error with which it is to fail. `context` becomes the
/// calling thread's.
cublasStatus_t enter(const char *call, uint64_t *context = nullptr);
/// Says what is wrong with the call that the thread is in.
cublasStatus_t refuse(cublasStatus_t status, const std::string &why);

struct Handle {
  /// The number of the context that it was made in.
  uint64_t context = 0;
};

struct Layout {
  uint32_t type = 0;
  int32_t order = CUBLASLT_ORDER_COL;
  uint64_t rows = 0, columns = 0;
  int64_t leading = 0;
  int32_t batchCount = 1;
  int64_t batchStride = 0;
};

struct Operation {
  int32_t compute = 0, scale = 0;
  int32_t pointerMode = CUBLASLT_POINTER_MODE_HOST;
  int32_t transposeA = CUBLAS_OP_N, transposeB = CUBLAS_OP_N,
          transposeC = CUBLAS_OP_N;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void *bias = nullptr;
  int64_t biasBatchStride = 0;
  /// -1: that of D.
  int32_t biasType = -1;
  /// What an activation is of, which is written, or read for its gradient.
  void *aux = nullptr;
  int64_t auxLeading = 0, auxBatchStride = 0;

  bool hasBias() const { return epilogue & CUBLASLT_EPILOGUE_BIAS; }
  bool writesAux() const {
    return epilogue == CUBLASLT_EPILOGUE_GELU_AUX ||
           epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
  }
  bool readsAux() const { return epilogue == CUBLASLT_EPILOGUE_DGELU; }
};

struct Preference {
  uint64_t maxWorkspace = 0;
  /// Of A, B, C and D.
  uint32_t alignment[4] = {256, 256, 256, 256};
};

/// Objects that were made and not destroyed yet.
template <typename T, typename Handle>
class Living {
public:
  Handle add(T object) {
    std::lock_guard<std::mutex> held(mutex);
    auto made = std::make_unique<T>(std::move(object));
    auto handle = reinterpret_cast<Handle>(made.get());
    objects.emplace(handle, std::move(made));
    return handle;
  }
  /// Null where there is none.
  T *find(Handle handle) {
    std::lock_guard<std::mutex> held(mutex);
    auto found = objects.find(handle);
    return found == objects.end() ? nullptr : found->second.get();
  }
  /// Returns whether there was one.
  bool remove(Handle handle) {
    std::lock_guard<std::mutex> held(mutex);
    return objects.erase(handle);
  }

private:
  std::mutex mutex;
  std::unordered_map<Handle, std::unique_ptr<T>> objects;
};

Living<Handle, cublasLtHandle_t> &handles();
Living<Layout, cublasLtMatrixLayout_t> &layouts();
Living<Operation, cublasLtMatmulDesc_t> &operations();
Living<Preference, cublasLtMatmulPreference_t> &preferences();

} // namespace simcublas

#endif // AX_TEST_SIMCUBLAS_DESCRIPTORS_H
