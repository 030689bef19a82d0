//===- Mutations.h - Every single edit of a plan ----------------*- C++ -*-===//
#ifndef AX_TEST_UNIT_PLAN_MUTATIONS_H
#define AX_TEST_UNIT_PLAN_MUTATIONS_H

#include "ax/Dialect/Ax.h"
#include "mlir/IR/BuiltinOps.h"

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

/// Edits of different operations of one module. False when one of them does not
/// apply.
bool apply(mlir::ModuleOp module, llvm::ArrayRef<Mutation> mutations);

} // namespace ax::plan

#endif // AX_TEST_UNIT_PLAN_MUTATIONS_H
