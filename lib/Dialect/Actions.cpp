//===- Actions.cpp - Entries of schedules ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Dialect/Actions.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace ax;

Action ax::markedAction(Operation *op) {
  auto marked = op->getAttrOfType<StringAttr>(kAction);
  return marked ? parseActionLetter(marked.getValue()).value_or(Action::Forward)
                : Action::Forward;
}

static StringAttr textOf(MLIRContext *context, Action action) {
  return StringAttr::get(context, Twine(letterOf(action)));
}

void ax::markAction(Operation *op, Action action) {
  op->setAttr(kAction, textOf(op->getContext(), action));
}

std::optional<ActionKind> ax::actionOf(StageOp stage) {
  ActionKind kind;
  if (Attribute marked = stage->getDiscardableAttr(kAction)) {
    auto text = dyn_cast<StringAttr>(marked);
    auto action = text ? parseActionLetter(text.getValue()) : std::nullopt;
    if (!action)
      return std::nullopt;
    kind.action = *action;
  }
  if (Attribute part = stage->getDiscardableAttr(kPart)) {
    auto number = dyn_cast<IntegerAttr>(part);
    if (!number || !number.getType().isInteger(64) || number.getInt() < 0)
      return std::nullopt;
    kind.part = number.getInt();
  }
  return kind;
}

void ax::setAction(StageOp stage, ActionKind kind) {
  Builder builder(stage.getContext());
  if (kind.action != Action::Forward)
    stage->setDiscardableAttr(kAction, textOf(stage.getContext(), kind.action));
  if (kind.part != 0)
    stage->setDiscardableAttr(kPart, builder.getI64IntegerAttr(kind.part));
}

sharding::SubAxes ax::inTime(const sharding::SubAxes &axes,
                             const sharding::Mesh &mesh) {
  sharding::SubAxes found;
  for (const sharding::SubAxis &axis : axes)
    if (mesh.isInTime(axis))
      found.push_back(axis);
  return found;
}

bool ax::isReducedOverTime(const sharding::Layout &layout,
                           const sharding::Mesh &mesh) {
  sharding::SubAxes axes = inTime(layout.partial, mesh);
  return !axes.empty() && layout.partialKind != sharding::ReduceKind::Min &&
         sharding::numParts(axes) == mesh.numTimeSlices();
}

bool ax::isAccumulated(OpResult result, const sharding::Mesh &mesh) {
  return isReducedOverTime(getLayout(tensorType(result), mesh), mesh) &&
         llvm::any_of(result.getUsers(), [](Operation *user) {
           auto stage = dyn_cast<StageOp>(user);
           auto kind = stage ? actionOf(stage) : std::nullopt;
           return kind && kind->isOnceAStep();
         });
}

bool ax::isReducedWhereKept(Operation *op, const sharding::Mesh &mesh) {
  auto collective = dyn_cast<CollectiveOpInterface>(op);
  if (!collective || !isa<AllReduceOp>(op))
    return false;
  sharding::SubAxes axes = collective.getMovedAxes().resolve(mesh);
  return inTime(axes, mesh).size() == axes.size();
}

OpResult ax::keptInPlaceOf(OpResult result, const sharding::Mesh &mesh) {
  auto stage = dyn_cast<StageOp>(result.getOwner());
  if (!stage || result.use_empty() ||
      !llvm::all_of(result.getUsers(), llvm::IsaPred<StageOp>))
    return {};
  Value given = stage.getBody().front().getTerminator()->getOperand(
      result.getResultNumber());
  auto reduce = given.getDefiningOp<AllReduceOp>();
  if (!reduce || !inTime(reduce.getMovedAxes().resolve(mesh), mesh).empty())
    return {};
  Value added = reduce->getOperand(cast<OpResult>(given).getResultNumber());
  while (added.hasOneUse() && added.getDefiningOp() &&
         isReducedWhereKept(added.getDefiningOp(), mesh))
    added = added.getDefiningOp()->getOperand(
        cast<OpResult>(added).getResultNumber());
  auto argument = dyn_cast<BlockArgument>(added);
  if (!argument || !argument.hasOneUse())
    return {};
  auto sum = dyn_cast<OpResult>(stage->getOperand(argument.getArgNumber()));
  return sum && sum.getDefiningOp<StageOp>() && sum.hasOneUse() &&
                 isAccumulated(sum, mesh)
             ? sum
             : OpResult();
}

static bool isKeptByMicroBatch(OpResult result, const sharding::Mesh &mesh) {
  const sharding::Layout &layout = getLayout(tensorType(result), mesh);
  return !inTime(layout.usedAxes(), mesh).empty() &&
         !isAccumulated(result, mesh);
}

void ax::setSlots(StageOp stage, const sharding::Mesh &mesh, int64_t slots) {
  for (OpResult result : stage.getResults())
    if (slots > 1 && isKeptByMicroBatch(result, mesh) &&
        llvm::any_of(result.getUsers(), llvm::IsaPred<StageOp>)) {
      Builder builder(stage.getContext());
      stage->setDiscardableAttr(kSlots, builder.getI64IntegerAttr(slots));
      return;
    }
}

int64_t ax::keptSlots(OpResult result, const sharding::Mesh &mesh) {
  if (!isKeptByMicroBatch(result, mesh))
    return 1;
  auto slots = dyn_cast_or_null<IntegerAttr>(
      result.getOwner()->getDiscardableAttr(kSlots));
  return slots && slots.getType().isInteger(64)
             ? std::max(slots.getInt(), int64_t(1))
             : 1;
}
