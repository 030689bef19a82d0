//===- PredictMemory.cpp - What a rank allocates --------------------------===//
//
// Not an estimate: the stages are localised, fused and placed as for a run.
//
//===----------------------------------------------------------------------===//
#include "ax/Codegen/Codegen.h"

#include "llvm/ADT/SetVector.h"

#include <set>

using namespace mlir;

namespace ax::codegen {

static bool isUpdate(Operation *op) {
  auto action = op->getAttrOfType<StringAttr>("ax.action");
  return action && action == "U";
}

/// Behind what only moves it.
static bool isState(Value value) {
  Operation *op = value.getDefiningOp();
  while (isa_and_nonnull<CollectiveOpInterface>(op))
    op = op->getOperand(0).getDefiningOp();
  return isa_and_nonnull<LoadOp, ConstantOp>(op);
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
    else if (op && (!isGiven || isa<CollectiveOpInterface>(op)))
      for (Value operand : op->getOperands())
        if (tensorType(operand).getShape() == tensorType(value).getShape())
          open.insert(operand);
  }
  return bytes;
}

llvm::Expected<std::vector<cost::RankMemory>> predictMemory(ProgramOp program) {
  Options options;
  options.withoutKernels = true;
  llvm::Expected<rt::Program> planned = generate(program, options);
  if (!planned)
    return planned.takeError();
  std::vector<StageOp> stages(planned->stages.size());
  for (auto stage : program.getBody().front().getOps<StageOp>())
    stages[stage.getOn()] = stage;
  std::vector<cost::RankMemory> result;
  for (auto [stage, op] : llvm::zip_equal(planned->stages, stages)) {
    cost::RankMemory &memory = result.emplace_back();
    std::set<std::pair<rt::Space, int32_t>> seen;
    for (const rt::Buffer &buffer : stage.buffers) {
      if (!seen.insert({buffer.space, buffer.index}).second)
        continue;
      if (buffer.space == rt::Space::State) {
        const rt::State &state = planned->states[buffer.index];
        (state.file.empty()
             ? state.isMutable ? memory.optimizer : memory.constants
             : memory.weights) += buffer.bytes;
      } else if (buffer.space == rt::Space::Received) {
        const rt::Transfer &transfer = planned->transfers[buffer.index];
        memory.slots += transfer.bytes * transfer.slots;
      } else if (buffer.space != rt::Space::Arena) {
        memory.ports += buffer.bytes * planned->mesh.numTimeSlices();
      }
    }
    memory.gradients =
        std::min(gradientBytes(op, planned->mesh), stage.arenaBytes);
    memory.activations = stage.arenaBytes - memory.gradients;
  }
  return result;
}

} // namespace ax::codegen
