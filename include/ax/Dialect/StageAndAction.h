//===- StageAndAction.h - Stage and action of an operation ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_DIALECT_STAGEANDACTION_H
#define AX_DIALECT_STAGEANDACTION_H

#include "ax/Dialect/Actions.h"
#include "mlir/IR/Builders.h"

namespace ax {

/// `made` gets the stage and the action of `from`, unless it has its own.
inline void copyStageAndAction(mlir::Operation *from, mlir::Operation *made) {
  for (llvm::StringRef name :
       {llvm::StringRef(kStage), llvm::StringRef(kAction)})
    if (mlir::Attribute attr = from->getAttr(name);
        attr && !made->hasAttr(name))
      made->setAttr(name, attr);
}

/// What a builder makes belongs to `action`, and to `stage` if there is one.
struct MarkStageAndAction : mlir::OpBuilder::Listener {
  explicit MarkStageAndAction(Action action, mlir::Attribute stage = {})
      : action(action), stage(stage) {}
  void notifyOperationInserted(mlir::Operation *made,
                               mlir::OpBuilder::InsertPoint) final {
    if (action != Action::Forward)
      markAction(made, action);
    if (stage)
      made->setAttr(kStage, stage);
  }
  Action action;
  mlir::Attribute stage;
};

} // namespace ax

#endif // AX_DIALECT_STAGEANDACTION_H
