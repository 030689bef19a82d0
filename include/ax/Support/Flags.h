//===- Flags.h - Command lines ----------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What values of flags, and files, are made of.
//
//===----------------------------------------------------------------------===//
#ifndef AX_SUPPORT_FLAGS_H
#define AX_SUPPORT_FLAGS_H

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <utility>

namespace ax {

/// `NAME=FILE`: names and files may hold '=' themselves, so that the first one
/// behind which an existing file is named counts, else the first. Both are
/// empty where one would be.
std::pair<llvm::StringRef, llvm::StringRef> splitAtFile(llvm::StringRef text);

/// A finite number in decimal digits, `1`, `-0.5` or `1e-3`, and nothing else;
/// nothing where `text` is none.
std::optional<double> parseNumber(llvm::StringRef text);

/// Whether `text` has brackets of any kind more than `limit` deep, outside of
/// quoted strings: what parsers that recurse must not be given.
bool nestsDeeper(llvm::StringRef text, int limit);

} // namespace ax

#endif // AX_SUPPORT_FLAGS_H
