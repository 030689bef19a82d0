//===- Escape.cpp - Paths that must stay in a folder ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Support/Escape.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Path.h"

#include <sys/stat.h>

namespace ax {

std::string findEscape(const std::string &folder, llvm::StringRef location) {
  if (location.empty() || location.contains('\0'))
    return "is not a file name";
  if (llvm::sys::path::is_absolute(location))
    return "is an absolute path";
  std::string current = folder;
  llvm::SmallVector<llvm::StringRef, 4> parts;
  location.split(parts, '/', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef part : parts) {
    if (part == "..")
      return "leaves the folder by '..'";
    current += "/" + part.str();
    struct stat info;
    if (lstat(current.c_str(), &info) == 0 && S_ISLNK(info.st_mode))
      return "is a symbolic link, or reached by one";
  }
  return "";
}

} // namespace ax
