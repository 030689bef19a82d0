//===- PlanAttrs.h - Attributes that plans have -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Discardable attributes with our prefix that stay in a plan. On which
// operations each may stand, and of which kind it is, the dialect verifies
// everywhere (lib/Dialect/PlanAttrs.cpp); what else must hold of it, who uses
// it. Other attributes with our prefix are how passes talk to each other, and
// no plan has them.
//
//===----------------------------------------------------------------------===//
#ifndef AX_DIALECT_PLANATTRS_H
#define AX_DIALECT_PLANATTRS_H

#include "mlir/IR/Operation.h"

namespace ax {

/// Attribute of a plan: the folder of the model's files, for those who have
/// moved the plan.
inline constexpr llvm::StringLiteral kModelDir = "ax.model_dir";

/// Attribute of a plan: a dictionary of the files that states are in, with the
/// size and the checksum of each.
inline constexpr llvm::StringLiteral kFiles = "ax.files";

/// Attribute of a plan: a dictionary of the model's weights of which constants
/// of the plan were made, or which decided what it does. It has for each name
/// the `fingerprintOf` the elements: other values of them need another plan.
inline constexpr llvm::StringLiteral kFolded = "ax.folded";

/// Attribute of a plan: those of them, as a list, that are parameters of the
/// model. A file that has its weights has these.
inline constexpr llvm::StringLiteral kFoldedParameters = "ax.folded_parameters";

/// Attribute of a plan: the machine that its times and memory are predicted
/// for: a GPU, as `sm_90`, or what a file of `--machine` has, as a dictionary;
/// without it that is a generic processor. It runs elsewhere, too.
inline constexpr llvm::StringLiteral kMachine = "ax.machine";

/// Attribute of an operation that no gradient goes through, whatever it has.
inline constexpr llvm::StringLiteral kNoGradient = "ax.no_gradient";

/// Returns true of the names above, and of those that say of themselves that a
/// plan, a program or a stage has them.
bool isPlanAttribute(llvm::StringRef name);

/// Returns false where `attribute` is one of them, and cannot stand on `op` or
/// cannot be what it is.
bool fitsPlanAttribute(mlir::Operation *op, mlir::NamedAttribute attribute);

} // namespace ax

#endif // AX_DIALECT_PLANATTRS_H
