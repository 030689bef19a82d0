//===- ProgramNames.h - Names that programs which train use -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_DIALECT_PROGRAMNAMES_H
#define AX_DIALECT_PROGRAMNAMES_H

#include "llvm/ADT/StringRef.h"

namespace ax {

/// The program of a plan that trains which only measures how good the states
/// are. The other one changes them.
inline constexpr llvm::StringLiteral evaluationProgram = "eval";

/// The program that gives the model's own outputs, in evaluation mode: beside
/// the two others in a plan that trains, or all that there is.
inline constexpr llvm::StringLiteral predictionProgram = "predict";

/// The program that takes several tokens of a prompt at a time, beside one that
/// takes one: both carry the same states.
inline constexpr llvm::StringLiteral prefillProgram = "prefill";

/// The program that runs once, when the states are loaded: it makes of weights,
/// and nothing else, what the other programs load as prepared states.
inline constexpr llvm::StringLiteral preparationProgram = "prepare";

/// A program of this name drops nothing, and changes no state.
inline bool isEvaluationMode(llvm::StringRef program) {
  return program == evaluationProgram || program == predictionProgram;
}

/// Attribute of the input that holds the labels of a loss over classes: a
/// dictionary of `classes`, `ignore_index` and `shift` (how many places the
/// program itself moves them to the left), each i64.
inline constexpr llvm::StringLiteral kLabels = "ax.labels";

/// Attribute of a result: i64, the dimension that counts samples.
inline constexpr llvm::StringLiteral kSamples = "ax.samples";

/// Attribute of a result of a program: the dimension along which results come
/// first and padding follows. How many there are is the result
/// `countName(name)`, an i64 scalar.
inline constexpr llvm::StringLiteral kCountedDim = "ax.counted_dim";
inline std::string countName(llvm::StringRef output) {
  return (output + ".count").str();
}

/// Attribute of a result until layouts are chosen: the name of the input that
/// it is in the next step.
inline constexpr llvm::StringLiteral kCarried = "ax.carried";

/// Attribute of a plan: the names of inputs that take no batches.
inline constexpr llvm::StringLiteral kUnbatched = "ax.unbatched";

} // namespace ax

#endif // AX_DIALECT_PROGRAMNAMES_H
