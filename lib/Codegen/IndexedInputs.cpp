//===- IndexedInputs.cpp - Inputs that hold indices -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "IndexedInputs.h"

#include "ax/Dialect/Indexing.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace ax::codegen {

/// The value that has every element of what `use` takes, each as it is; nothing
/// for what changes, chooses or drops some.
static Value keepsAll(OpOperand &use) {
  using Result = Value;
  Operation *op = use.getOwner();
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case<ReshapeOp, TransposeOp, BroadcastOp, TransferOp, AllGatherOp,
            AllSliceOp, AllToAllOp, CollectivePermuteOp>(
          [](auto moving) -> Result { return moving->getResult(0); })
      .Case([](CastOp cast) -> Result {
        auto from = dyn_cast<IntegerType>(
            tensorType(cast.getOperand()).getElementType());
        auto to = dyn_cast<IntegerType>(
            tensorType(cast.getResult()).getElementType());
        bool keeps = from && to && from.isSignless() && to.isSignless() &&
                     to.getWidth() >= from.getWidth();
        return keeps ? cast.getResult() : Value();
      })
      .Case([&](StageOp stage) -> Result {
        return stage.getBody().getArgument(use.getOperandNumber());
      })
      .Case([&](YieldOp yield) -> Result {
        auto stage = dyn_cast<StageOp>(yield->getParentOp());
        return stage ? stage->getResult(use.getOperandNumber()) : Value();
      })
      .Default([](Operation *) { return Result(); });
}

std::optional<int64_t> findIndexedSize(ProgramOp program, unsigned input) {
  std::optional<int64_t> smallest;
  llvm::SmallSetVector<Value, 8> values;
  values.insert(program.getArgument(input));
  for (size_t i = 0; i < values.size(); ++i)
    for (OpOperand &use : values[i].getUses()) {
      if (Value kept = keepsAll(use))
        values.insert(kept);
      if (use.getOperandNumber() != indicesOperand)
        continue;
      auto sizes = getIndexedSizes(use.getOwner());
      if (sizes && sizes->size() == 1)
        smallest = std::min(smallest.value_or(sizes->front()), sizes->front());
    }
  return smallest;
}

} // namespace ax::codegen
