//===- MarkCandidates.cpp - Which states training may change --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Roles are known when layers are raised, but what raises them looks at values
// of masks and numbers: it may not at those that training changes.
//
//===----------------------------------------------------------------------===//
#include "ax/Dialect/WeightKind.h"
#include "ax/Passes/Choices.h"
#include "ax/Passes/Passes.h"

namespace ax {
#define GEN_PASS_DEF_MARKCANDIDATES
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;

static bool mayBeTrained(const WeightChoice &choice) {
  StateOp state = choice.state;
  if (choice.isTrained || choice.isByFlags)
    return choice.isTrained;
  Type element = state.getTensorType().getElementType();
  if (!isa<FloatType>(element) || isFloat8(element))
    return false;
  switch (choice.kind.value_or(WeightKind::Parameter)) {
  case WeightKind::Buffer:
  case WeightKind::Constant:
  case WeightKind::Statistic:
  case WeightKind::Sines:
  case WeightKind::InitialState:
    return false;
  case WeightKind::Mask:
  case WeightKind::Progression:
  case WeightKind::Grid:
    // Where layers take them, roles have said so.
    return false;
  case WeightKind::Parameter:
  case WeightKind::LayerParameter:
  case WeightKind::Repeated:
  case WeightKind::ZeroRow:
    // A Linear's bias is known as one when the Linear is.
    return true;
  }
  return true;
}

namespace {
struct MarkCandidates : ax::impl::MarkCandidatesBase<MarkCandidates> {
  using MarkCandidatesBase::MarkCandidatesBase;

  void runOnOperation() final {
    PlanOp plan = getOperation();
    auto choices = chooseTrainable(plan, trainable, frozen);
    if (!choices) {
      // ax-select-trainable says it.
      llvm::consumeError(choices.takeError());
      return;
    }
    for (const WeightChoice &choice : *choices)
      if (mayBeTrained(choice))
        StateOp(choice.state)
            ->setAttr(kMayBeTrained, UnitAttr::get(&getContext()));
  }
};
} // namespace
