//===- Evaluation.h - Names that programs which train use -------*- C++ -*-===//
#ifndef AX_DIALECT_EVALUATION_H
#define AX_DIALECT_EVALUATION_H

#include "llvm/ADT/StringRef.h"

namespace ax {

/// The program of a plan that trains which only measures how good the states
/// are. The other one changes them.
inline constexpr llvm::StringLiteral evaluationProgram = "eval";

/// The program that gives the model's own outputs, in evaluation mode: beside
/// the two others in a plan that trains, or all that there is.
inline constexpr llvm::StringLiteral predictionProgram = "predict";

/// The program that runs once, when the states are loaded: it makes of weights,
/// and nothing else, what the other programs load as prepared states.
inline constexpr llvm::StringLiteral preparationProgram = "prepare";

/// A program of this name drops nothing, and changes no state.
inline bool isEvaluation(llvm::StringRef program) {
  return program == evaluationProgram || program == predictionProgram;
}

/// Of the input that holds the labels of a loss over classes: a dictionary of
/// `classes`, `ignore_index` and `shift` (how many places the program itself
/// moves them to the left), each i64.
inline constexpr llvm::StringLiteral kLabels = "ax.labels";

/// Of a result: i64, the dimension that counts samples.
inline constexpr llvm::StringLiteral kSamples = "ax.samples";

/// Of a plan: the names of inputs that take no batches.
inline constexpr llvm::StringLiteral kUnbatched = "ax.unbatched";

} // namespace ax

#endif // AX_DIALECT_EVALUATION_H
