//===- AlgorithmCache.h - The fastest algorithms of products ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_CUDA_ALGORITHMCACHE_H
#define AX_RUNTIME_CUDA_ALGORITHMCACHE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

#include <cublasLt.h>

#include <mutex>
#include <optional>
#include <string>

namespace ax::rt::cuda {

/// Which of the algorithms that cuBLASLt names for a product was the fastest:
/// for the ranks of a card, and in a folder for other runs. What is read there
/// only chooses among those, and chooses none where it is damaged or of another
/// product.
class AlgorithmCache {
public:
  using Algorithms = llvm::ArrayRef<cublasLtMatmulAlgo_t>;

  /// `folder`: empty for none.
  explicit AlgorithmCache(std::string folder) : folder(std::move(folder)) {}

  /// To be held from `find` to `keep`: one product is timed at a time.
  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex); }
  /// Returns the number of the algorithm that was kept for `key`, which says
  /// all that the choice depends on; nothing where it is not among them.
  std::optional<size_t> find(const std::string &key, Algorithms among);
  /// A folder that cannot be written is no error.
  void keep(const std::string &key, const cublasLtMatmulAlgo_t &algorithm);

private:
  std::string pathOf(const std::string &key) const;

  std::string folder;
  std::mutex mutex;
  /// Key -> what a file would have.
  llvm::StringMap<std::string> entries;
};

/// How many algorithms are timed for a product: AXRUN_CUDA_ALGORITHMS, 1 to 8,
/// of which 1 times none; a Usage error where it is anything else.
llvm::Expected<int> numTimedAlgorithms();

} // namespace ax::rt::cuda

#endif // AX_RUNTIME_CUDA_ALGORITHMCACHE_H
