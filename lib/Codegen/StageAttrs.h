//===- StageAttrs.h - What one pass says to a later one ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_CODEGEN_STAGEATTRS_H
#define AX_LIB_CODEGEN_STAGEATTRS_H

#include "llvm/ADT/StringRef.h"

namespace ax::codegen {

/// The attribute of a local stage that says of which operands, by number, the
/// memory is free once the stage has read them: an array of i64. They are sums
/// over micro-batches, which the next step starts anew.
inline constexpr llvm::StringLiteral kSpent = "axl.spent";

/// The attribute of a local stage that says which arguments, by number, hold
/// the same in every step: an array of i64. They are states that no program of
/// the plan stores to, or only the one that ran before.
inline constexpr llvm::StringLiteral kFrozen = "axl.frozen";

/// The attribute of a local program that says which states nothing changes but
/// one list of it: an array of their symbols.
inline constexpr llvm::StringLiteral kOwned = "axl.owned";

/// The attribute of a kernel that says which results are rounded copies of
/// states, which lists of a rank share from step to step: for each result the
/// number of the copy in the program, or -1.
inline constexpr llvm::StringLiteral kCopies = "axl.copies";

/// The attribute of what becomes a command that is done in the first step
/// alone: a unit.
inline constexpr llvm::StringLiteral kOnce = "axl.once";

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_STAGEATTRS_H
