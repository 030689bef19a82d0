//===- Staying.cpp - Elements in place that stay as they are --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Staying.h"

#include "ElementOps.h"
#include "Emitter.h"

#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;

namespace ax::codegen {

using Choices = llvm::SetVector<Operation *>;

/// All uses of the old value are in choices, and each of these but the last is
/// used once, so that they are a tree. Empty where that is not so.
static Choices findChoices(BlockArgument old, Value root) {
  Choices choices;
  SmallVector<Value> open{old};
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (value != old && !value.hasOneUse())
      return {};
    for (OpOperand &use : value.getUses()) {
      auto select = dyn_cast<SelectOp>(use.getOwner());
      if (!select || use.getOperandNumber() == 0 ||
          select.getResult().getType() != old.getType())
        return {};
      if (choices.insert(select) && select.getResult() != root)
        open.push_back(select.getResult());
    }
  }
  if (!choices.contains(root.getDefiningOp()))
    return {};
  return choices;
}

/// What `values` are made of within the fusion, themselves included; `goOn`
/// says of which operations what they take belongs to it, too.
static llvm::SetVector<Value> findSources(
    ArrayRef<Value> values,
    function_ref<bool(Operation *)> goOn = [](Operation *) { return true; }) {
  llvm::SetVector<Value> sources(values.begin(), values.end());
  for (size_t i = 0; i != sources.size(); ++i)
    if (Operation *op = sources[i].getDefiningOp(); op && goOn(op))
      sources.insert(op->operand_begin(), op->operand_end());
  return sources;
}

/// Operations that vary in no other dimensions than what they take.
static bool isBroadcasting(Operation *op) {
  return isElementwise(op) || isa<BroadcastOp>(op);
}

/// Along which dimensions of `rank`, to which it is broadcast, a value varies.
static llvm::SmallBitVector variesAlong(Value value, unsigned rank) {
  llvm::SmallBitVector dims(rank);
  for (Value source : findSources(value, isBroadcasting)) {
    Operation *op = source.getDefiningOp();
    ArrayRef<int64_t> shape = tensorType(source).getShape();
    auto constant = dyn_cast_or_null<ConstantOp>(op);
    auto numbers = constant ? dyn_cast<DenseElementsAttr>(constant.getValue())
                            : DenseElementsAttr();
    if ((op && isBroadcasting(op)) || (numbers && numbers.isSplat()))
      continue;
    auto iota = dyn_cast_or_null<IotaOp>(op);
    for (auto [d, size] : llvm::enumerate(shape))
      if (size > 1 && (!iota || iota.getDim() == d))
        dims.set(rank - shape.size() + d);
  }
  return dims;
}

/// The number of elements behind the last dimension that a condition varies in.
static int64_t findRow(const Choices &choices, ArrayRef<int64_t> shape) {
  llvm::SmallBitVector dims(shape.size());
  for (Operation *choice : choices)
    dims |= variesAlong(cast<SelectOp>(choice).getCondition(), shape.size());
  int64_t row = 1;
  for (int64_t size : shape.drop_front(dims.find_last() + 1))
    row *= size;
  return row;
}

/// Whether what is chosen from, and by, is of operands that stay as they are
/// while this result is written, and conditions are no sums of rows, which
/// would be made inside of a loop.
static bool areApart(FusionOp fusion, BlockArgument old,
                     const Choices &choices) {
  ArrayRef<int64_t> places = *fusion.getInPlace();
  SmallVector<Value> conditions, all;
  for (Operation *choice : choices) {
    conditions.push_back(choice->getOperand(0));
    llvm::append_range(all, choice->getOperands());
  }
  auto isWritten = [&](Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && argument != old &&
           llvm::is_contained(places, argument.getArgNumber());
  };
  auto isRow = [](Value value) {
    return value.getDefiningOp() && isRowOp(value.getDefiningOp());
  };
  return llvm::none_of(findSources(all), isWritten) &&
         llvm::none_of(findSources(conditions), isRow);
}

std::optional<Staying> findStaying(FusionOp fusion, unsigned result) {
  constexpr int64_t cacheLine = 64;
  std::optional<ArrayRef<int64_t>> places = fusion.getInPlace();
  if (!places || (*places)[result] < 0)
    return std::nullopt;
  BlockArgument old = fusion.getBody().getArgument((*places)[result]);
  Value root = fusion.getBody().front().getTerminator()->getOperand(result);
  Choices choices = findChoices(old, root);
  if (choices.empty() || !areApart(fusion, old, choices))
    return std::nullopt;
  RankedTensorType type = tensorType(old);
  int64_t row = findRow(choices, type.getShape());
  if (row < type.getNumElements() &&
      row * storageBytes(type.getElementType()) < cacheLine)
    return std::nullopt;
  return Staying{old, std::move(choices), row};
}

bool stayAlike(const Staying &one, Value value, const Staying &two,
               Value other) {
  if (value == one.old || other == two.old)
    return value == one.old && other == two.old;
  if (!one.choosesOld(value) || !two.choosesOld(other))
    return one.choosesOld(value) == two.choosesOld(other);
  auto first = value.getDefiningOp<SelectOp>(),
       second = other.getDefiningOp<SelectOp>();
  return first.getCondition() == second.getCondition() &&
         stayAlike(one, first.getOnTrue(), two, second.getOnTrue()) &&
         stayAlike(one, first.getOnFalse(), two, second.getOnFalse());
}

SmallVector<BlockArgument> operandsOfNew(const Staying &staying) {
  SmallVector<Value> made;
  for (Operation *choice : staying.choices)
    for (Value value : llvm::drop_begin(choice->getOperands()))
      if (!staying.choosesOld(value))
        made.push_back(value);
  SmallVector<BlockArgument> operands;
  for (Value source : findSources(made))
    if (auto argument = dyn_cast<BlockArgument>(source))
      operands.push_back(argument);
  return operands;
}

} // namespace ax::codegen
