//===- Patterns.h - Rewrites of the Normalize phase -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PASSES_NORMALIZE_PATTERNS_H
#define AX_PASSES_NORMALIZE_PATTERNS_H

#include "mlir/IR/PatternMatch.h"

namespace ax {

/// Reshapes, transposes, slices, broadcasts, casts: none that does nothing, no
/// two in a row where one will do.
void addMovementPatterns(mlir::RewritePatternSet &patterns);
/// Numbers: neutral elements, powers, constants to the right.
void addArithmeticPatterns(mlir::RewritePatternSet &patterns);
/// Operations on constants.
void addConstantPatterns(mlir::RewritePatternSet &patterns);
/// Element-wise operations broadcast by themselves.
void addBroadcastPatterns(mlir::RewritePatternSet &patterns);
/// Reshapes go below element-wise operations.
void addSinkReshapePatterns(mlir::RewritePatternSet &patterns);
/// Contractions read their operands in any order of dimensions.
void addContractionPatterns(mlir::RewritePatternSet &patterns);
/// Sums of what a mean was taken from are not made.
void addSumPatterns(mlir::RewritePatternSet &patterns);
/// Lookups with known indices are slices.
void addLookupPatterns(mlir::RewritePatternSet &patterns);

} // namespace ax

#endif // AX_PASSES_NORMALIZE_PATTERNS_H
