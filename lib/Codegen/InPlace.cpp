//===- InPlace.cpp - Results that replace states where they are -----------===//
#include "InPlace.h"

#include "Views.h"

using namespace mlir;

namespace ax::codegen {

/// Whether everything that reads `value` comes before `op`, which does too.
static bool isLastReader(Operation *op, Value value) {
  SmallVector<Value> seen{value};
  while (!seen.empty())
    for (Operation *user : seen.pop_back_val().getUsers()) {
      if (isViewOp(user))
        seen.push_back(user->getResult(0));
      else if (user != op && !user->isBeforeInBlock(op))
        return false;
    }
  return true;
}

/// Whether the element of a result is made from that element of `argument`
/// alone: a kernel reads it once, before it writes.
static bool isElementwiseIn(FusionOp fusion, BlockArgument argument) {
  auto hasShape = [&](Value value) {
    return tensorType(value).getShape() == tensorType(argument).getShape();
  };
  if (!llvm::all_of(fusion.getResults(), hasShape))
    return false;
  SmallVector<Value> open{argument};
  llvm::SmallDenseSet<Value> seen;
  while (!open.empty())
    for (Operation *user : open.pop_back_val().getUsers()) {
      if (isa<YieldOp>(user))
        continue;
      if (!isa<UnaryOp, BinaryOp, SelectOp, CompareOp, CastOp>(user) ||
          !llvm::all_of(user->getResults(), hasShape))
        return false;
      for (Value result : user->getResults())
        if (seen.insert(result).second)
          open.push_back(result);
    }
  return true;
}

/// `made` may be written over `old`.
static void markInPlace(Value made, Value old) {
  auto result = dyn_cast<OpResult>(made);
  auto fusion = result ? dyn_cast<FusionOp>(result.getOwner()) : FusionOp();
  if (!fusion || !result.hasOneUse() || old.getType() != result.getType() ||
      llvm::count(fusion.getOperands(), old) != 1 || !isLastReader(fusion, old))
    return;
  auto operand =
      llvm::find(fusion.getOperands(), old) - fusion.getOperands().begin();
  if (!isElementwiseIn(fusion, fusion.getBody().getArgument(operand)))
    return;
  SmallVector<int64_t> places(fusion.getNumResults(), -1);
  if (auto marked = fusion->getAttrOfType<DenseI64ArrayAttr>(kInPlace))
    places.assign(marked.asArrayRef().begin(), marked.asArrayRef().end());
  places[result.getResultNumber()] = operand;
  fusion->setAttr(kInPlace,
                  DenseI64ArrayAttr::get(fusion.getContext(), places));
}

void markInPlace(LocalStage &stage) {
  Block &block = stage.program->getBody().front();
  OperandRange returned = block.getTerminator()->getOperands();
  size_t firstStored = returned.size() - stage.stored.size();
  for (auto [i, name] : llvm::enumerate(stage.stored))
    if (auto state = llvm::find(stage.states, name);
        state != stage.states.end())
      markInPlace(
          returned[firstStored + i],
          block.getArgument(stage.numInputs + (state - stage.states.begin())));
  for (auto [i, number] : llvm::enumerate(stage.accumulated))
    markInPlace(returned[number], block.getArgument(stage.firstSum() + i));
}

Value inPlaceOperand(OpResult result) {
  auto marked = result.getOwner()->getAttrOfType<DenseI64ArrayAttr>(kInPlace);
  if (!marked || marked[result.getResultNumber()] < 0)
    return {};
  return result.getOwner()->getOperand(marked[result.getResultNumber()]);
}

} // namespace ax::codegen
