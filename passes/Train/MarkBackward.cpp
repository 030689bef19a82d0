//===- MarkBackward.cpp - Forward or backward pass ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "MarkBackward.h"

#include "../Match.h"
#include "ax/Dialect/Actions.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace ax;

bool ax::jumps(Operation *op) {
  if (auto unary = dyn_cast<UnaryOp>(op))
    switch (unary.getKind()) {
    case UnaryKind::sign:
    case UnaryKind::ceil:
    case UnaryKind::floor:
    case UnaryKind::round:
    case UnaryKind::trunc:
      return true;
    default:
      break;
    }
  auto isFloat = [](Value value) { return isa<FloatType>(elementType(value)); };
  return llvm::any_of(op->getOperands(), isFloat) &&
         !llvm::all_of(op->getResults(), isFloat);
}

void ax::markBackward(ProgramOp program, ArrayRef<Value> forward) {
  Block &block = program.getBody().front();
  llvm::SetVector<Value> needed(forward.begin(), forward.end());
  needed.insert_range(block.getTerminator()->getOperands());
  for (Operation &op : block.without_terminator())
    if (markedAction(&op) == Action::Forward && jumps(&op))
      needed.insert_range(op.getResults());
    else if (markedAction(&op) == Action::Update)
      for (Value operand : op.getOperands())
        if (Operation *maker = operand.getDefiningOp();
            maker && markedAction(maker) == Action::Forward)
          needed.insert(operand);
  for (size_t i = 0; i < needed.size(); ++i)
    if (Operation *op = needed[i].getDefiningOp())
      needed.insert_range(op->getOperands());
  for (Operation &op : block.without_terminator()) {
    if (isSource(&op) || markedAction(&op) == Action::Update)
      continue;
    if (llvm::any_of(op.getResults(),
                     [&](Value result) { return needed.contains(result); }))
      op.removeAttr(kAction);
    else
      markAction(&op, Action::Backward);
  }
}
