//===- Predict.cpp - What a rank allocates, and how long it takes ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Not an estimate: the stages are localised, fused and placed as for a run.
//
//===----------------------------------------------------------------------===//
#include "PredictTime.h"

#include "ax/Codegen/Codegen.h"
#include "ax/Dialect/Actions.h"
#include "ax/Dialect/PlanAttrs.h"
#include "ax/Runtime/MemoryNeeds.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace ax::codegen {

static bool isUpdate(Operation *op) {
  return markedAction(op) == Action::Update;
}

/// It gives its operand, elsewhere.
static bool isMoved(Operation *op) {
  return isa_and_nonnull<CollectiveOpInterface, WaitOp>(op);
}

static Value movedFrom(Value value) {
  return value.getDefiningOp()->getOperand(
      cast<OpResult>(value).getResultNumber());
}

/// Whether a value is a source, as a state is, behind what only moves it.
static bool isState(Value value) {
  while (Operation *op = value.getDefiningOp())
    if (isMoved(op))
      value = movedFrom(value);
    else
      return isSource(op);
  return false;
}

/// What the updates of the stage's states take from the backward pass, of
/// their shape.
static int64_t gradientBytes(StageOp stage, const sharding::Mesh &mesh) {
  llvm::SetVector<Value> open;
  for (auto store : stage.getBody().front().getOps<StoreOp>())
    if (isUpdate(store))
      open.insert(store.getOperand());
  int64_t bytes = 0;
  for (size_t i = 0; i < open.size(); ++i) {
    Value value = open[i];
    Operation *op = value.getDefiningOp();
    if (tensorType(value).getRank() == 0 || isState(value))
      continue;
    // A new weight may be gathered after the update.
    bool isGiven = !op || !isUpdate(op);
    if (isGiven && llvm::any_of(value.getUsers(), [](Operation *user) {
          return isUpdate(user) && !isa<StoreOp>(user);
        }))
      bytes += cost::localBytes(tensorType(value), mesh);
    else if (isMoved(op))
      open.insert(movedFrom(value));
    else if (op && !isGiven)
      for (Value operand : op->getOperands())
        if (tensorType(operand).getShape() == tensorType(value).getShape())
          open.insert(operand);
  }
  return bytes;
}

/// What the list leaves for others.
static void addKept(StageOp list, const sharding::Mesh &mesh,
                    cost::RankMemory &memory) {
  for (OpResult result : list.getResults()) {
    bool isKept = false, isForUpdate = false;
    for (Operation *user : result.getUsers())
      if (auto other = dyn_cast<StageOp>(user)) {
        isKept = true;
        isForUpdate |= actionOf(other)->isOnceAStep();
      }
    if (isKept && !keptInPlaceOf(result, mesh))
      (isForUpdate ? memory.gradients : memory.activations) +=
          cost::localBytes(tensorType(result), mesh) * keptSlots(result, mesh);
  }
}

/// By stages.
static std::vector<cost::RankMemory>
findMemory(ProgramOp program, const rt::Program &planned, bool isGpu) {
  std::vector<cost::RankMemory> result(planned.stages.size());
  for (auto stage : program.getBody().front().getOps<StageOp>())
    addKept(stage, planned.mesh, result[stage.getOn()]);
  for (auto [stage, memory] : llvm::zip_equal(planned.stages, result)) {
    rt::MemoryNeeds needs = rt::findNeeds(planned, stage);
    memory.weights = needs.weights;
    memory.optimizer = needs.optimizer;
    memory.carried = needs.carried;
    memory.constants = needs.constants;
    memory.slots = needs.slots;
    // The host's device uses those of all micro-batches where requests have
    // them.
    memory.ports =
        needs.ports * (isGpu ? rt::numPortSlots : planned.mesh.numTimeSlices());
    // That of a processor's kernels is small.
    memory.activations += needs.values + (isGpu ? needs.scratch : 0);
  }
  // Of a program that is one list they are in the arena.
  for (auto stage : program.getBody().front().getOps<StageOp>())
    if (actionOf(stage) == ActionKind()) {
      cost::RankMemory &memory = result[stage.getOn()];
      int64_t bytes =
          std::min(gradientBytes(stage, planned.mesh), memory.activations);
      memory.gradients += bytes;
      memory.activations -= bytes;
    }
  return result;
}

llvm::Expected<cost::Predictions> predict(ProgramOp program) {
  Options options;
  options.withoutKernels = true;
  cost::Machine machine = cost::machineOf(program);
  if (!machine.target.empty()) {
    llvm::Expected<Target> target = Target::parse(machine.target);
    if (!target)
      return target.takeError();
    options.target = *target;
  }
  llvm::Expected<rt::Program> planned = generate(program, options);
  if (!planned)
    return planned.takeError();
  std::vector<cost::RankMemory> memory =
      findMemory(program, *planned, !machine.target.empty());
  // A stage has its lists as the program has them.
  std::vector<size_t> numBefore(planned->stages.size());
  cost::Predictions result;
  for (auto list : program.getBody().front().getOps<StageOp>()) {
    const rt::StageProgram &stage = planned->stages[list.getOn()];
    const rt::CommandList &commands = stage.lists[numBefore[list.getOn()]++];
    result[list] = {memory[list.getOn()],
                    predictSeconds(commands, stage, *planned, machine)};
  }
  return result;
}

} // namespace ax::codegen
