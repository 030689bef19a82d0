//===- PlanAttrs.cpp - Attributes that plans have -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Dialect/PlanAttrs.h"

#include "ax/Dialect/Actions.h"
#include "ax/Dialect/ProgramNames.h"
#include "ax/Dialect/TrainingAttrs.h"

#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace ax;

namespace {

template <typename OpT, typename... AttrTs>
bool isOn(Operation *op, Attribute value) {
  return isa<OpT>(op) && isa<AttrTs...>(value);
}

bool isSteps(Operation *op, Attribute value) {
  auto steps = dyn_cast<IntegerAttr>(value);
  return isa<ProgramOp>(op) && steps && steps.getType().isInteger(64) &&
         steps.getInt() > 0;
}

/// Checkpoints and logs are JSON, which has it.
bool isOptimizer(Operation *op, Attribute value) {
  auto text = dyn_cast<StringAttr>(value);
  return isa<ProgramOp>(op) && text && llvm::json::isUTF8(text.getValue());
}

/// What a stage has for an action is verified with it.
bool isAction(Operation *op, Attribute value) {
  if (isa<PlanOp, ProgramOp, StateOp, MeshOp>(op))
    return false;
  return isa<StageOp>(op) ||
         value == StringAttr::get(op->getContext(),
                                  Twine(letterOf(markedAction(op))));
}

struct PlanAttribute {
  StringRef name;
  bool (*fits)(Operation *op, Attribute value);
};

} // namespace

static const PlanAttribute attributes[] = {
    {kModelDir, isOn<PlanOp, StringAttr>},
    {kData, isOn<PlanOp, StringAttr>},
    {kFiles, isOn<PlanOp, DictionaryAttr>},
    {kFolded, isOn<PlanOp, DictionaryAttr>},
    {kFoldedParameters, isOn<PlanOp, ArrayAttr>},
    {kMachine, isOn<PlanOp, StringAttr, DictionaryAttr>},
    {kUnbatched, isOn<PlanOp, ArrayAttr>},
    {kLearningRateSteps, isSteps},
    {kOptimizer, isOptimizer},
    {kAction, isAction},
    {kPart, isOn<StageOp, Attribute>},
    {kSlots, isOn<StageOp, Attribute>},
    {kNoGradient,
     [](Operation *, Attribute value) { return isa<UnitAttr>(value); }}};

static const PlanAttribute *find(StringRef name) {
  auto *found = llvm::find_if(
      attributes, [&](const PlanAttribute &one) { return one.name == name; });
  return found == std::end(attributes) ? nullptr : found;
}

bool ax::isPlanAttribute(StringRef name) { return find(name); }

bool ax::fitsPlanAttribute(Operation *op, NamedAttribute attribute) {
  const PlanAttribute *known = find(attribute.getName());
  return !known || known->fits(op, attribute.getValue());
}
