//===- FoldedWeights.h - Weights that are constants of a plan ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_INTERPRETER_FOLDEDWEIGHTS_H
#define AX_INTERPRETER_FOLDEDWEIGHTS_H

#include "ax/Dialect/Ax.h"
#include "ax/Dialect/PlanAttrs.h"
#include "ax/Support/HostTensor.h"

#include <set>
#include <string>

namespace ax {

/// Whether a tensor of that type may be a weight. Integers of 64 bits and
/// booleans are indices, shapes and masks, which belong to the architecture.
bool mayBeWeight(DType type);

/// Adds the fingerprint of `tensor` to the plan's dictionary, if it may be a
/// weight.
void addFolded(PlanOp plan, llvm::StringRef name, const HostTensor &tensor);

/// Returns the plan's list, in order, each once.
llvm::SmallVector<llvm::StringRef> foldedParametersOf(PlanOp plan);

/// Adds those of `names` that are in the plan's dictionary.
void addFoldedParameters(PlanOp plan, std::set<std::string> names);

} // namespace ax

#endif // AX_INTERPRETER_FOLDEDWEIGHTS_H
