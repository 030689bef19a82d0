//===- StoreMutations.cpp - Edits of what becomes of states ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Mutations.h"

#include "ax/Dialect/ProgramNames.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace ax::plan {

/// The next store in the same list, of a value of the same type.
static StoreOp nextStore(StoreOp store) {
  for (Operation *op = store->getNextNode(); op; op = op->getNextNode())
    if (auto next = dyn_cast<StoreOp>(op);
        next && next.getOperand().getType() == store.getOperand().getType())
      return next;
  return {};
}

static void addStore(StoreOp store, AddMutation add) {
  // Without its only store, a state of the model is one that is not trained.
  auto state = cast<StateOp>(
      SymbolTable::lookupNearestSymbolFrom(store, store.getStateAttr()));
  if (state.isZeroAtFirst() ||
      state.getStages().value_or(ArrayRef<int64_t>()).size() > 1)
    add("deleted", [](Operation *op) {
      op->erase();
      return true;
    });
  add("of the next one's value", [](Operation *op) {
    StoreOp next = nextStore(cast<StoreOp>(op));
    bool changes = next && op->getOperand(0) != next.getOperand();
    if (changes)
      op->setOperand(0, next.getOperand());
    return changes;
  });
  add("swapped with the next one", [](Operation *op) {
    StoreOp next = nextStore(cast<StoreOp>(op));
    if (!next || op->getOperand(0) == next.getOperand())
      return false;
    Value own = op->getOperand(0);
    op->setOperand(0, next.getOperand());
    next->setOperand(0, own);
    return true;
  });
}

static void addLoad(LoadOp load, AddMutation add) {
  // Elsewhere it is one store more among those that are compared.
  if (!isEvaluationMode(load->getParentOfType<ProgramOp>().getSymName()))
    return;
  add("stored again", [](Operation *op) {
    auto load = cast<LoadOp>(op);
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    StoreOp::create(builder, op->getLoc(), load.getState(), load.getResult());
    return true;
  });
}

void addStoreMutations(Operation *op, AddMutation add) {
  if (auto store = dyn_cast<StoreOp>(op))
    addStore(store, add);
  if (auto load = dyn_cast<LoadOp>(op))
    addLoad(load, add);
}

} // namespace ax::plan
