//===- Evaluation.h - Names that programs which train use -------*- C++ -*-===//
#ifndef AX_DIALECT_EVALUATION_H
#define AX_DIALECT_EVALUATION_H

#include "llvm/ADT/StringRef.h"

namespace ax {

/// The program of a plan that trains which only measures how good the states
/// are. The other one changes them.
inline constexpr llvm::StringLiteral evaluationProgram = "eval";

/// Of the input that holds the labels of a loss over classes: a dictionary of
/// `classes`, `ignore_index` and `shift` (how many places the program itself
/// moves them to the left), each i64.
inline constexpr llvm::StringLiteral kLabels = "ax.labels";

} // namespace ax

#endif // AX_DIALECT_EVALUATION_H
