//===- MatchedNodes.h - The nodes of what is replaced -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PASSES_RAISE_MATCHEDNODES_H
#define AX_PASSES_RAISE_MATCHEDNODES_H

#include "ax/Dialect/Ax.h"

namespace ax {

/// Gives `root`, which an operation on `input` is about to replace, the
/// location of all that leads from there to it: what replaces it computes their
/// nodes.
void mergeMatched(mlir::Operation *root, mlir::Value input);

} // namespace ax

#endif // AX_PASSES_RAISE_MATCHEDNODES_H
