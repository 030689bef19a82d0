//===- CacheFolder.cpp - Where what can be made again is kept -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Support/CacheFolder.h"

#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"

namespace ax {

std::string cacheFolder(llvm::StringRef kind) {
  llvm::SmallString<128> folder;
  if (auto cache = llvm::sys::Process::GetEnv("AXOPT_CACHE")) {
    folder = *cache;
  } else {
    if (!llvm::sys::path::home_directory(folder))
      return "";
    llvm::sys::path::append(folder, ".cache", "axopt");
  }
  llvm::sys::path::append(folder, kind);
  return folder.str().str();
}

} // namespace ax
