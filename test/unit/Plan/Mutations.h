//===- Mutations.h - Every single edit of a plan ----------------*- C++ -*-===//
#ifndef AX_TEST_UNIT_PLAN_MUTATIONS_H
#define AX_TEST_UNIT_PLAN_MUTATIONS_H

#include "ax/Dialect/Ax.h"
#include "mlir/IR/BuiltinOps.h"

#include <functional>

namespace ax::plan {

struct Mutation {
  std::string name;
  /// False when it does not apply. The module may be broken afterwards.
  std::function<bool(mlir::ModuleOp)> apply;
};

/// Deletions, swaps and edits of collectives, layouts, transfers, states,
/// schedule entries and the mesh.
std::vector<Mutation> allMutations(mlir::ModuleOp module);

} // namespace ax::plan

#endif // AX_TEST_UNIT_PLAN_MUTATIONS_H
