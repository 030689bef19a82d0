//===- MergeEqual.h - Equal operations once ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_CODEGEN_MERGEEQUAL_H
#define AX_LIB_CODEGEN_MERGEEQUAL_H

#include "ax/Local/Local.h"

namespace ax::codegen {

/// Operations with other numbers in this attribute are not equal: what is made
/// of them would be in memory from one reader to the other. The pass takes the
/// attribute away.
inline constexpr llvm::StringLiteral kApart = "axl.apart";

/// Removes what nothing reads, and does equal operations once.
void mergeEqual(LocalStageOp stage);

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_MERGEEQUAL_H
