//===- CacheFolder.h - Where what can be made again is kept -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_SUPPORT_CACHEFOLDER_H
#define AX_SUPPORT_CACHEFOLDER_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace ax {

/// `kind` in $AXOPT_CACHE or ~/.cache/axopt, whether it is there or not; empty
/// where there is no home either.
std::string cacheFolder(llvm::StringRef kind);

} // namespace ax

#endif // AX_SUPPORT_CACHEFOLDER_H
