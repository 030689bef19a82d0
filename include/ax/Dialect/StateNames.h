//===- StateNames.h - States that training and dropout add ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_DIALECT_STATENAMES_H
#define AX_DIALECT_STATENAMES_H

#include "llvm/ADT/StringRef.h"

namespace ax {

/// The state that decides all that is random: `axrun --seed`. And the one that
/// counts the steps that are done.
inline constexpr llvm::StringLiteral kRandomSeed = "random.seed",
                                     kStepCounter = "optimizer.step";

} // namespace ax

#endif // AX_DIALECT_STATENAMES_H
