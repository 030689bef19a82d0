//===- AlgorithmCache.cpp - The fastest algorithms of products ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AlgorithmCache.h"

#include "ax/Support/AtomicFile.h"
#include "ax/Support/Error.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/xxhash.h"

#include <cstdlib>

namespace ax::rt::cuda {

/// All that a file has: so it says nothing that is not compared.
static std::string entryOf(const std::string &key,
                           const cublasLtMatmulAlgo_t &algorithm) {
  std::string text = "axopt algorithm 1\n" + key + "\n";
  for (uint64_t word : algorithm.data)
    text += llvm::utohexstr(word, /*LowerCase=*/true, /*Width=*/16) + "\n";
  return text;
}

std::string AlgorithmCache::pathOf(const std::string &key) const {
  return folder + "/" +
         llvm::utohexstr(llvm::xxh3_64bits(key), /*LowerCase=*/true,
                         /*Width=*/16) +
         ".algorithm";
}

std::optional<size_t> AlgorithmCache::find(const std::string &key,
                                           Algorithms among) {
  auto [known, isNew] = entries.try_emplace(key);
  std::string &entry = known->second;
  if (isNew && !folder.empty())
    if (auto file = llvm::MemoryBuffer::getFile(
            pathOf(key), /*IsText=*/false, /*RequiresNullTerminator=*/false,
            /*IsVolatile=*/true))
      entry = (*file)->getBuffer().str();
  for (auto [number, algorithm] : llvm::enumerate(among))
    if (entry == entryOf(key, algorithm))
      return number;
  return std::nullopt;
}

void AlgorithmCache::keep(const std::string &key,
                          const cublasLtMatmulAlgo_t &algorithm) {
  std::string &entry = entries[key];
  entry = entryOf(key, algorithm);
  // Without the file the next run times them again.
  if (!folder.empty() && !llvm::sys::fs::create_directories(folder))
    llvm::consumeError(
        writeFileAtomically(pathOf(key), llvm::StringRef(entry), 0644));
}

llvm::Expected<int> numTimedAlgorithms() {
  constexpr int most = 8;
  const char *text = std::getenv("AXRUN_CUDA_ALGORITHMS");
  int number = most;
  if (text &&
      (!llvm::to_integer(text, number, 10) || number < 1 || number > most))
    return makeErrorf(ExitCode::Usage,
                      "AXRUN_CUDA_ALGORITHMS is '{0}': it says how many "
                      "algorithms are timed for a product, 1 to {1}; 1 times "
                      "none and takes the first",
                      text, most);
  return number;
}

} // namespace ax::rt::cuda
