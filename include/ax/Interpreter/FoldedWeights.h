//===- FoldedWeights.h - Weights that are constants of a plan ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_INTERPRETER_FOLDEDWEIGHTS_H
#define AX_INTERPRETER_FOLDEDWEIGHTS_H

#include "ax/Dialect/Ax.h"
#include "ax/Support/HostTensor.h"

#include <set>
#include <string>

namespace ax {

/// Attribute of a plan: a dictionary of the model's weights of which constants
/// of the plan were made, or which decided what it does. It has for each name
/// the `fingerprintOf` the elements: other values of them need another plan.
inline constexpr llvm::StringLiteral kFolded = "ax.folded";

/// Attribute of a plan: those of them, as a list, that are parameters of the
/// model. A file that has its weights has these.
inline constexpr llvm::StringLiteral kFoldedParameters = "ax.folded_parameters";

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
