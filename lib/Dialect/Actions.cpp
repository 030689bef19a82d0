//===- Actions.cpp - Entries of schedules ---------------------------------===//
#include "ax/Dialect/Actions.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace ax;

static bool isLetter(StringRef text) {
  return text == "F" || text == "B" || text == "W" || text == "U";
}

char ax::markedAction(Operation *op) {
  auto marked = op->getAttrOfType<StringAttr>(kAction);
  return marked && isLetter(marked.getValue()) ? marked.getValue()[0] : 'F';
}

void ax::markAction(Operation *op, char letter) {
  op->setAttr(kAction,
              StringAttr::get(op->getContext(), StringRef(&letter, 1)));
}

std::optional<ActionKind> ax::actionOf(StageOp stage) {
  ActionKind kind;
  if (Attribute action = stage->getDiscardableAttr(kAction)) {
    auto text = dyn_cast<StringAttr>(action);
    if (!text || !isLetter(text.getValue()))
      return std::nullopt;
    kind.letter = text.getValue()[0];
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
  if (kind.letter != 'F')
    stage->setDiscardableAttr(
        kAction, builder.getStringAttr(StringRef(&kind.letter, 1)));
  if (kind.part != 0)
    stage->setDiscardableAttr(kPart, builder.getI64IntegerAttr(kind.part));
}

std::string ax::toString(const ScheduledAction &action) {
  std::string text(1, action.kind.letter);
  if (!action.kind.isOnceAStep())
    text += std::to_string(action.microBatch);
  if (action.kind.part != 0)
    text += "." + std::to_string(action.kind.part);
  return text;
}

std::optional<ScheduledAction> ax::parseAction(StringRef text) {
  ScheduledAction action;
  if (!isLetter(text.take_front(1)))
    return std::nullopt;
  action.kind.letter = text[0];
  auto [number, part] = text.drop_front().split('.');
  bool hasPart = text.contains('.');
  if (action.kind.isOnceAStep() ? !number.empty()
                                : number.getAsInteger(10, action.microBatch))
    return std::nullopt;
  if (hasPart && part.getAsInteger(10, action.kind.part))
    return std::nullopt;
  if (action.microBatch < 0 || action.kind.part < 0)
    return std::nullopt;
  return action;
}

sharding::SubAxes ax::inTime(const sharding::SubAxes &axes,
                             const sharding::Mesh &mesh) {
  sharding::SubAxes found;
  for (const sharding::SubAxis &axis : axes)
    if (mesh.isInTime(axis))
      found.push_back(axis);
  return found;
}

bool ax::isSummedOverTime(const sharding::Layout &layout,
                          const sharding::Mesh &mesh) {
  sharding::SubAxes axes = inTime(layout.partial, mesh);
  return !axes.empty() && layout.partialKind == sharding::ReduceKind::Sum &&
         sharding::numParts(axes) == mesh.numTimeSlices();
}

bool ax::isAccumulated(OpResult result, const sharding::Mesh &mesh) {
  return isSummedOverTime(getLayout(tensorType(result), mesh), mesh) &&
         llvm::any_of(result.getUsers(), [](Operation *user) {
           auto stage = dyn_cast<StageOp>(user);
           auto kind = stage ? actionOf(stage) : std::nullopt;
           return kind && kind->isOnceAStep();
         });
}

static bool isKeptByMicroBatch(OpResult result, const sharding::Mesh &mesh) {
  sharding::Layout layout = getLayout(tensorType(result), mesh);
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
