//===- Escape.h - Paths that must stay in a folder --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_SUPPORT_ESCAPE_H
#define AX_SUPPORT_ESCAPE_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace ax {

/// Why `location` is no relative path that stays in `folder`: what its text
/// says, or a symbolic link below the folder. Empty when it is one, there or
/// not.
std::string findEscape(const std::string &folder, llvm::StringRef location);

} // namespace ax

#endif // AX_SUPPORT_ESCAPE_H
