//===- StageLists.cpp - Forward and backward lists ------------------------===//
#include "StageLists.h"

using namespace mlir;
using namespace ax;

static constexpr llvm::StringLiteral letterOrder = "FBWU";

StageLists::StageLists(ProgramOp program, const Placement &placement)
    : program(program), placement(placement) {}

StageList &StageLists::list(char letter, int64_t part, int64_t on) {
  StageList &found = lists[{letterOrder.find(letter), part, on}];
  found.kind = {letter, part};
  found.on = on;
  return found;
}

LogicalResult StageLists::bring(Value value, char letter, int64_t stage) {
  if (placement.isEverywhere(value))
    return success();
  StageList &here = ofStage(letter, stage);
  Operation *producer = value.getDefiningOp();
  if (!producer) {
    take(here, value, nullptr);
    return success();
  }
  char made = placement.letterOf(producer);
  int64_t origin = *placement.stageOf(producer);
  if (&here == &homeOf(producer) || here.takes.contains(value))
    return success();
  // From list to list, until the one that makes it.
  char fromLetter = letter;
  int64_t fromStage = stage;
  if (letter == 'W') {
    fromLetter = made == 'F' && stage >= origin ? 'F' : 'B';
  } else if (letter == 'B' && made == 'F' && stage >= origin) {
    fromLetter = 'F';
  } else if (letter == 'B' && stage == origin) {
    fromLetter = made;
  } else {
    fromStage += letter == 'F' ? -1 : 1;
    if (fromStage < 0 || fromStage >= placement.numStages() ||
        (letter == 'F') != (origin < stage))
      return producer->emitError()
             << "of stage " << origin << " makes what stage " << stage
             << " needs before";
  }
  take(here, value, &ofStage(fromLetter, fromStage));
  return bring(value, fromLetter, fromStage);
}

LogicalResult StageLists::placeOutputs() {
  for (Value value : program.getBody().front().getTerminator()->getOperands()) {
    Operation *producer = value.getDefiningOp();
    bool isAnywhere = !producer || placement.isEverywhere(producer);
    if (!isAnywhere && placement.letterOf(producer) == 'U')
      continue;
    StageList &home = isAnywhere ? ofStage('F', 0) : homeOf(producer);
    if (!producer)
      take(home, value, nullptr);
    home.gives.insert(value);
    givers[value] = &home;
  }
  return success();
}

LogicalResult StageLists::collect() {
  for (int64_t stage = 0; stage < placement.numStages(); ++stage)
    ofStage('F', stage);
  for (Operation &op : program.getBody().front().without_terminator()) {
    if (placement.isEverywhere(&op) || placement.letterOf(&op) == 'U')
      continue;
    homeOf(&op).ops.push_back(&op);
    for (Value operand : op.getOperands())
      if (failed(
              bring(operand, placement.letterOf(&op), *placement.stageOf(&op))))
        return failure();
  }
  placeUpdates(*this, program, placement);
  return placeOutputs();
}

std::vector<StageList *> StageLists::inOrder() {
  std::vector<StageList *> result;
  for (auto &[key, list] : lists)
    result.push_back(&list);
  // Backward passes begin at the last stage.
  auto keyOf = [&](const StageList *list) {
    int64_t stage = list->kind.part * placement.numCoordinates() + list->on;
    size_t letter = letterOrder.find(list->kind.letter);
    return std::pair(letter, letter == 1 || letter == 2 ? -stage : stage);
  };
  llvm::stable_sort(result, [&](const StageList *a, const StageList *b) {
    return keyOf(a) < keyOf(b);
  });
  return result;
}
