//===- SharedLibrary.cpp - Libraries that are found at run time -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Support/SharedLibrary.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <dlfcn.h>

namespace ax {

void *openLibrary(llvm::ArrayRef<const char *> names, const char *path,
                  std::string &why) {
  llvm::SmallVector<llvm::StringRef, 4> folders;
  llvm::StringRef(path ? path : "").split(folders, ':', -1, false);
  llvm::SmallVector<std::string, 8> files;
  for (llvm::StringRef folder : folders)
    for (const char *name : names)
      files.push_back(folder.str() + "/" + name);
  files.append(names.begin(), names.end());
  for (const std::string &file : files) {
    if (void *opened = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL))
      return opened;
    why += (why.empty() ? "" : "; ") + std::string(dlerror());
  }
  return nullptr;
}

void *findSymbol(void *library, const char *symbol) {
  return dlsym(library, symbol);
}

} // namespace ax
