//===- Renaming.h - The same pieces, dealt to other ranks -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_SHARDING_RENAMING_H
#define AX_LIB_SHARDING_RENAMING_H

#include "ax/Sharding/Layout.h"

namespace ax::sharding::detail {

/// The axes that name the pieces of one dimension before and after, without
/// those that name the same digit in both.
struct Renaming {
  SubAxes before, after;
};

/// Returns what turns one split into the other; nothing when the two do not
/// fall into the same pieces.
std::optional<Renaming> renamingOf(const DimLayout &from, const DimLayout &to);

} // namespace ax::sharding::detail

#endif // AX_LIB_SHARDING_RENAMING_H
