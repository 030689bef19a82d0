//===- CudnnPlanCache.cpp - Plans of cuDNN on disk ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CudnnPlanCache.h"

#include "ax/Support/AtomicFile.h"
#include "ax/Support/OwnFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/xxhash.h"

namespace ax::rt::cuda {

static std::string hashOf(llvm::StringRef text) {
  return llvm::utohexstr(llvm::xxh3_64bits(text), /*LowerCase=*/true,
                         /*Width=*/16);
}

/// What is in front of a plan in its file.
static std::string headOf(const std::string &key, llvm::StringRef plan) {
  return "axopt cudnn plan 1\n" + key + "\n" + hashOf(plan) + "\n";
}

std::string CudnnPlanCache::pathOf(llvm::StringRef key) const {
  return folder + "/" + hashOf(key) + ".plan";
}

std::optional<std::string> CudnnPlanCache::find(llvm::StringRef graph) const {
  std::string key = maker + "\n" + graph.str();
  if (folder.empty())
    return std::nullopt;
  std::unique_ptr<llvm::MemoryBuffer> file = readOwnFile(pathOf(key));
  if (!file)
    return std::nullopt;
  llvm::StringRef text = file->getBuffer();
  llvm::StringRef plan = text.substr(headOf(key, "").size());
  if (!text.consume_front(headOf(key, plan)))
    return std::nullopt;
  return plan.str();
}

void CudnnPlanCache::keep(llvm::StringRef graph, llvm::StringRef plan) const {
  std::string key = maker + "\n" + graph.str();
  // Without the file the next run makes the plan again.
  if (!folder.empty() && !llvm::sys::fs::create_directories(folder))
    llvm::consumeError(writeFileAtomically(
        pathOf(key), llvm::StringRef(headOf(key, plan) + plan.str()), 0644));
}

} // namespace ax::rt::cuda
