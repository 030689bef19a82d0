//===- Mutations.h - Every single edit of a plan ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_UNIT_PLAN_MUTATIONS_H
#define AX_TEST_UNIT_PLAN_MUTATIONS_H

#include "ax/Dialect/Ax.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <functional>

namespace ax::plan {

struct Mutation {
  std::string name;
  /// Of the operation that is edited, in the order of a walk.
  size_t number = 0;
  /// False when it does not apply. The module may be broken afterwards.
  std::function<bool(mlir::Operation *)> edit;
};

/// Deletions, swaps and edits of collectives, layouts, transfers, states and
/// stores, schedule entries and the mesh.
std::vector<Mutation> allMutations(mlir::ModuleOp module);

/// Takes what an edit is, and the edit.
using AddMutation = llvm::function_ref<void(
    const std::string &, std::function<bool(mlir::Operation *)>)>;
/// Those of them that are of a store or load.
void addStoreMutations(mlir::Operation *op, AddMutation add);

/// Edits of different operations of one module. False when one of them does not
/// apply.
bool apply(mlir::ModuleOp module, llvm::ArrayRef<Mutation> mutations);

} // namespace ax::plan

#endif // AX_TEST_UNIT_PLAN_MUTATIONS_H
