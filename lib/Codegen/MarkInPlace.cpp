//===- MarkInPlace.cpp - Results that replace states where they are -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ForEachStage.h"
#include "StridedView.h"
#include "ax/Codegen/LocalPasses.h"

namespace ax::codegen {
#define GEN_PASS_DEF_MARKINPLACE
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

/// Whether everything that reads `value` comes before `op`, which does too.
static bool isLastReader(Operation *op, Value value) {
  return llvm::all_of(readersOf(value), [op](Operation *reader) {
    return reader == op || reader->isBeforeInBlock(op);
  });
}

/// Whether elements of results are made from those of `argument` at the same
/// places, and those of result `number` are: so that a kernel reads each once,
/// before it writes there. Were the result made without it, another one might
/// be made of it behind that.
static bool isElementwiseIn(FusionOp fusion, BlockArgument argument,
                            unsigned number) {
  auto hasShape = [&](Value value) {
    return tensorType(value).getShape() == tensorType(argument).getShape();
  };
  if (!llvm::all_of(fusion.getResults(), hasShape))
    return false;
  SmallVector<Value> open{argument};
  llvm::SmallDenseSet<Value> seen;
  while (!open.empty())
    for (Operation *user : open.pop_back_val().getUsers()) {
      if (isa<LocalYieldOp>(user))
        continue;
      if (!isElementwise(user) || !llvm::all_of(user->getResults(), hasShape))
        return false;
      for (Value result : user->getResults())
        if (seen.insert(result).second)
          open.push_back(result);
    }
  return seen.contains(
      fusion.getBody().front().getTerminator()->getOperand(number));
}

/// Whether one result of the stage, and no other, is made of `value`: who reads
/// it before may read it where it stays, as attention does a cache.
static bool isReturnedOnce(OpResult value) {
  return llvm::count_if(readersOf(value), llvm::IsaPred<LocalYieldOp>) == 1;
}

/// `made` may be written over `old`.
static void markInPlace(Value made, Value old) {
  auto result = dyn_cast<OpResult>(made);
  auto fusion = result ? dyn_cast<FusionOp>(result.getOwner()) : FusionOp();
  if (!fusion || !isReturnedOnce(result) || old.getType() != result.getType() ||
      llvm::count(fusion.getOperands(), old) != 1 || !isLastReader(fusion, old))
    return;
  auto operand =
      llvm::find(fusion.getOperands(), old) - fusion.getOperands().begin();
  if (!isElementwiseIn(fusion, fusion.getBody().getArgument(operand),
                       result.getResultNumber()))
    return;
  SmallVector<int64_t> places(fusion.getNumResults(), -1);
  if (std::optional<ArrayRef<int64_t>> marked = fusion.getInPlace())
    places.assign(marked->begin(), marked->end());
  places[result.getResultNumber()] = operand;
  fusion.setInPlace(places);
}

static void markInPlace(LocalStageOp stage) {
  Block &block = stage.getBlock();
  OperandRange returned = stage.getYield()->getOperands();
  for (auto [i, name] : llvm::enumerate(stage.getStored()))
    if (auto state = llvm::find(stage.getStates(), name);
        state != stage.getStates().end())
      markInPlace(returned[stage.getFirstStored() + i],
                  block.getArgument(stage.getNumInputs() +
                                    (state - stage.getStates().begin())));
  for (auto [i, number] : llvm::enumerate(stage.getAccumulated()))
    markInPlace(returned[number], block.getArgument(stage.getFirstSum() + i));
}

namespace {

struct MarkInPlacePass : codegen::impl::MarkInPlaceBase<MarkInPlacePass> {
  void runOnOperation() override {
    forEachStage(getOperation(),
                 [](LocalStageOp stage) { markInPlace(stage); });
  }
};

} // namespace
