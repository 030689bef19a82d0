//===- CudnnPlanCache.h - Plans of cuDNN on disk ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_CUDA_CUDNNPLANCACHE_H
#define AX_RUNTIME_CUDA_CUDNNPLANCACHE_H

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace ax::rt::cuda {

/// What cuDNN says of plans, each under the text of what it does: to make a
/// plan of that takes milliseconds, and not half a second. There is code in it,
/// so that only files count that belong to the user, or to root, and that
/// nobody else may write. Processes may share the folder.
class CudnnPlanCache {
public:
  /// `folder`: empty for none. `maker`: all else that a plan depends on: the
  /// card, its driver, the library.
  CudnnPlanCache(std::string folder, std::string maker)
      : folder(std::move(folder)), maker(std::move(maker)) {}

  /// Returns nothing where there is none, or it is damaged or another's.
  std::optional<std::string> find(llvm::StringRef graph) const;
  /// A folder that cannot be written is no error.
  void keep(llvm::StringRef graph, llvm::StringRef plan) const;

private:
  std::string pathOf(llvm::StringRef key) const;

  std::string folder, maker;
};

} // namespace ax::rt::cuda

#endif // AX_RUNTIME_CUDA_CUDNNPLANCACHE_H
