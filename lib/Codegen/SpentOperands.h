//===- SpentOperands.h - Operands whose memory becomes free -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_CODEGEN_SPENTOPERANDS_H
#define AX_LIB_CODEGEN_SPENTOPERANDS_H

#include "llvm/ADT/StringRef.h"

namespace ax::codegen {

/// The attribute of a local stage that says of which operands, by number, the
/// memory is free once the stage has read them: an array of i64. They are sums
/// over micro-batches, which the next step starts anew.
inline constexpr llvm::StringLiteral kSpent = "axl.spent";

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_SPENTOPERANDS_H
