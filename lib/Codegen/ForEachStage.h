//===- ForEachStage.h - What passes work on ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_CODEGEN_FOREACHSTAGE_H
#define AX_LIB_CODEGEN_FOREACHSTAGE_H

#include "StageAttrs.h"
#include "ax/Local/Local.h"

namespace ax::codegen {

/// All local stages in `root`, or it alone, being one.
inline void forEachStage(mlir::Operation *root,
                         llvm::function_ref<void(LocalStageOp)> apply) {
  root->walk<mlir::WalkOrder::PreOrder>([&](LocalStageOp stage) {
    apply(stage);
    return mlir::WalkResult::skip();
  });
}

/// Whether the stage is of a plan that trains.
inline bool trains(LocalStageOp stage) {
  auto plan = stage->getParentOfType<PlanOp>();
  return plan && llvm::any_of(plan.getBody().getOps<StateOp>(),
                              [](StateOp op) { return op.getTrainable(); });
}

/// The stage's arguments that hold the same in every step.
inline llvm::SmallVector<mlir::Value> findFrozen(LocalStageOp stage) {
  llvm::SmallVector<mlir::Value> values;
  if (auto frozen = stage->getAttrOfType<mlir::DenseI64ArrayAttr>(kFrozen))
    for (int64_t number : frozen.asArrayRef())
      values.push_back(stage.getBlock().getArgument(number));
  return values;
}

/// Those, and what operations that hold `isKept` make of them and of constants
/// alone.
inline llvm::DenseSet<mlir::Value>
findFixed(LocalStageOp stage,
          llvm::function_ref<bool(mlir::Operation *)> isKept) {
  llvm::DenseSet<mlir::Value> fixed(llvm::from_range, findFrozen(stage));
  for (mlir::Operation &op : stage.getBlock())
    if (op.getNumOperands() != 0 && isKept(&op) &&
        llvm::all_of(op.getOperands(), [&](mlir::Value operand) {
          return fixed.contains(operand) || operand.getDefiningOp<ConstantOp>();
        }))
      fixed.insert(op.result_begin(), op.result_end());
  return fixed;
}

/// Removes what nothing uses, from the last to the first: what only removed
/// ones used goes, too.
inline void removeUnused(mlir::Block &block) {
  for (mlir::Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (op.use_empty() && mlir::isPure(&op) &&
        !op.hasTrait<mlir::OpTrait::IsTerminator>())
      op.erase();
}

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_FOREACHSTAGE_H
