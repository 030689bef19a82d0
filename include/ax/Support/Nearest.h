//===- Nearest.h - What a misspelled word may mean --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_SUPPORT_NEAREST_H
#define AX_SUPPORT_NEAREST_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace ax {

/// The one of `known` that differs from `word` in a few letters, or that it is
/// a part of; empty when none does.
llvm::StringRef findNearest(llvm::StringRef word,
                            llvm::ArrayRef<llvm::StringRef> known);

/// `; did you mean 'NAME'?`, or nothing.
std::string suggestNearest(llvm::StringRef word,
                           llvm::ArrayRef<llvm::StringRef> known);

} // namespace ax

#endif // AX_SUPPORT_NEAREST_H
