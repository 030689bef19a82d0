//===- StageLists.cpp - Forward and backward lists ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "StageLists.h"

using namespace mlir;
using namespace ax;

StageLists::StageLists(ProgramOp program, const Placement &placement)
    : program(program), placement(placement) {}

StageList &StageLists::list(Action action, int64_t part, int64_t on) {
  StageList &found = lists[{action, part, on}];
  found.kind = {action, part};
  found.on = on;
  return found;
}

LogicalResult StageLists::bring(Value value, Action action, int64_t stage) {
  if (placement.isEverywhere(value))
    return success();
  StageList &here = ofStage(action, stage);
  Operation *producer = value.getDefiningOp();
  if (!producer) {
    take(here, value, nullptr);
    return success();
  }
  Action made = placement.actionOf(producer);
  int64_t origin = *placement.stageOf(producer);
  if (&here == &homeOf(producer) || here.takes.contains(value))
    return success();
  // From list to list, until the one that makes it.
  Action fromAction = action;
  int64_t fromStage = stage;
  if (action == Action::Weights) {
    fromAction = made == Action::Forward && stage >= origin ? Action::Forward
                                                            : Action::Backward;
  } else if (action == Action::Backward && made == Action::Forward &&
             stage >= origin) {
    fromAction = Action::Forward;
  } else if (action == Action::Backward && stage == origin) {
    fromAction = made;
  } else {
    fromStage += action == Action::Forward ? -1 : 1;
    if (fromStage < 0 || fromStage >= placement.numStages() ||
        (action == Action::Forward) != (origin < stage))
      return producer->emitError()
             << "of stage " << origin << " makes what stage " << stage
             << " needs before";
  }
  take(here, value, &ofStage(fromAction, fromStage));
  return bring(value, fromAction, fromStage);
}

LogicalResult StageLists::placeOutputs() {
  for (Value value : program.getBody().front().getTerminator()->getOperands()) {
    Operation *producer = value.getDefiningOp();
    bool isAnywhere = !producer || placement.isEverywhere(producer);
    if (!isAnywhere && placement.actionOf(producer) == Action::Update)
      continue;
    StageList &home =
        isAnywhere ? ofStage(Action::Forward, 0) : homeOf(producer);
    if (!producer)
      take(home, value, nullptr);
    home.gives.insert(value);
    givers[value] = &home;
  }
  return success();
}

void ax::forEachStateRead(Operation *op, const Placement &placement,
                          llvm::function_ref<void(StringRef)> fn) {
  SmallVector<Operation *> open{op};
  while (!open.empty()) {
    Operation *next = open.pop_back_val();
    if (auto load = dyn_cast<LoadOp>(next))
      fn(load.getState());
    for (Value operand : next->getOperands())
      if (placement.isEverywhere(operand))
        open.push_back(operand.getDefiningOp());
  }
}

void ax::collectHeld(ProgramOp program, const Placement &placement,
                     HeldStates &held) {
  auto hold = [&](Operation *op, int64_t stage) {
    forEachStateRead(op, placement, [&](StringRef state) {
      held.insert({state.str(), placement.coordinateOf(stage)});
    });
  };
  Block &body = program.getBody().front();
  for (Operation &op : body.without_terminator())
    if (auto stage = placement.stageOf(&op);
        stage && !placement.isEverywhere(&op) &&
        placement.actionOf(&op) != Action::Update)
      hold(&op, *stage);
  // As `placeOutputs` has it.
  for (Value output : body.getTerminator()->getOperands())
    if (placement.isEverywhere(output))
      hold(output.getDefiningOp(), 0);
}

LogicalResult StageLists::collect(const HeldStates &held) {
  for (int64_t stage = 0; stage < placement.numStages(); ++stage)
    ofStage(Action::Forward, stage);
  for (Operation &op : program.getBody().front().without_terminator()) {
    if (placement.isEverywhere(&op) ||
        placement.actionOf(&op) == Action::Update)
      continue;
    homeOf(&op).ops.push_back(&op);
    for (Value operand : op.getOperands())
      if (failed(
              bring(operand, placement.actionOf(&op), *placement.stageOf(&op))))
        return failure();
  }
  placeUpdates(*this, program, placement, held);
  return placeOutputs();
}

std::vector<StageList *> StageLists::inOrder() {
  std::vector<StageList *> result;
  for (auto &[key, list] : lists)
    result.push_back(&list);
  // Backward passes begin at the last stage.
  auto keyOf = [&](const StageList *list) {
    Action action = list->kind.action;
    if (action == Action::Update)
      return std::tuple(action, list->kind.part, list->on);
    bool isBackward = action != Action::Forward;
    return std::tuple(action, isBackward ? -list->stage : list->stage,
                      list->on);
  };
  llvm::stable_sort(result, [&](const StageList *a, const StageList *b) {
    return keyOf(a) < keyOf(b);
  });
  return result;
}
