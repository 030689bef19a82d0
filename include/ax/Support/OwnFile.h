//===- OwnFile.h - Files that nobody else has written -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_SUPPORT_OWNFILE_H
#define AX_SUPPORT_OWNFILE_H

#include "llvm/Support/MemoryBuffer.h"

#include <memory>
#include <string>

namespace ax {

/// The contents of a regular file, of a cache whose code is run; null when
/// there is none, or somebody else than its user, or root, could have written
/// it.
std::unique_ptr<llvm::MemoryBuffer> readOwnFile(const std::string &path);

} // namespace ax

#endif // AX_SUPPORT_OWNFILE_H
