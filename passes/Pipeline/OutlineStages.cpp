//===- OutlineStages.cpp - Operations into stages, values into transfers --===//
#include "ax/Dialect/Ax.h"
#include "ax/Passes/Passes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <set>

namespace ax {
#define GEN_PASS_DEF_OUTLINESTAGES
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;

namespace {

bool isEverywhere(Operation *op) { return isa<LoadOp, ConstantOp>(op); }

/// One program's stages, from first to last.
class Outliner {
public:
  Outliner(ProgramOp program, int64_t stages)
      : program(program), body(program.getBody().front()),
        output(cast<ReturnOp>(body.getTerminator())), stages(stages),
        heldBy(stages) {}

  LogicalResult run();

private:
  /// Its attribute; of an op that later phases made, the stage by which all its
  /// operands are there.
  int64_t stageOf(Operation *op) const {
    if (auto stage = op->getAttrOfType<IntegerAttr>("stage"))
      return stage.getInt();
    int64_t stage = 0;
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp();
          producer && !isEverywhere(producer))
        stage = std::max(stage, stageOf(producer));
    return stage;
  }
  void collect();
  LogicalResult createStage(int64_t stage);

  ProgramOp program;
  Block &body;
  ReturnOp output;
  int64_t stages;
  std::vector<std::vector<Operation *>> opsOf;
  /// Values that a stage takes in and gives on, in order of definition.
  std::vector<llvm::SetVector<Value>> takes, gives;
  /// Where a value of the old body is found after each stage.
  std::vector<llvm::DenseMap<Value, Value>> heldBy;
};

} // namespace

void Outliner::collect() {
  opsOf.resize(stages);
  takes.resize(stages);
  gives.resize(stages);
  // Last stage that needs a value; outputs stay where they are made.
  llvm::MapVector<Value, int64_t> lastUse;
  for (Operation &op : body) {
    if (isEverywhere(&op) || isa<ReturnOp>(op))
      continue;
    opsOf[stageOf(&op)].push_back(&op);
    for (Value operand : op.getOperands())
      if (!operand.getDefiningOp() || !isEverywhere(operand.getDefiningOp())) {
        int64_t &last = lastUse.try_emplace(operand, 0).first->second;
        last = std::max(last, stageOf(&op));
      }
  }
  for (auto [value, last] : lastUse) {
    Operation *producer = value.getDefiningOp();
    if (!producer) {
      // Program inputs are given to every stage that uses them.
      for (Operation *user : value.getUsers())
        if (user != output)
          takes[stageOf(user)].insert(value);
      continue;
    }
    // A value that crosses several stages is forwarded through each.
    for (int64_t s = stageOf(producer); s < last; ++s) {
      gives[s].insert(value);
      takes[s + 1].insert(value);
    }
  }
  for (Value value : output.getOperands()) {
    Operation *producer = value.getDefiningOp();
    int64_t stage = producer && !isEverywhere(producer) ? stageOf(producer) : 0;
    if (!producer)
      takes[0].insert(value);
    gives[stage].insert(value);
  }
}

LogicalResult Outliner::createStage(int64_t stage) {
  OpBuilder builder(output);
  SmallVector<Value> operands;
  for (Value value : takes[stage]) {
    if (!value.getDefiningOp()) {
      operands.push_back(value);
      continue;
    }
    Value held = heldBy[stage - 1].lookup(value);
    operands.push_back(TransferOp::create(builder, value.getLoc(), held,
                                          stage - 1, stage, /*slots=*/2));
  }
  SmallVector<Type> results =
      llvm::map_to_vector(gives[stage], [](Value v) { return v.getType(); });
  auto op = StageOp::create(builder, program.getLoc(), results,
                            ("stage" + Twine(stage)).str(), stage, operands);
  Block &block = op.getBody().emplaceBlock();
  IRMapping mapping;
  for (Value value : takes[stage])
    mapping.map(value, block.addArgument(value.getType(), value.getLoc()));
  builder.setInsertionPointToEnd(&block);
  auto fetch = [&](Value value) {
    Operation *producer = value.getDefiningOp();
    if (producer && isEverywhere(producer) && !mapping.contains(value))
      builder.clone(*producer, mapping)->removeAttr("stage");
  };
  for (Operation *old : opsOf[stage]) {
    for (Value operand : old->getOperands()) {
      fetch(operand);
      if (!mapping.contains(operand))
        return old->emitError("in stage ")
               << stage << " needs a value that a later stage makes";
    }
    Operation *made = builder.clone(*old, mapping);
    made->removeAttr("stage");
    if (StringRef node = getNodeName(old);
        !node.empty() &&
        isa<LinearOp, DotOp, ConvOp, ConvTransposeOp, AttentionOp, GatherOp>(
            made))
      made->setAttr("node", builder.getStringAttr(node));
  }
  SmallVector<Value> yielded;
  for (Value value : gives[stage]) {
    fetch(value);
    yielded.push_back(mapping.lookup(value));
  }
  YieldOp::create(builder, program.getLoc(), yielded);
  for (auto [old, made] : llvm::zip(gives[stage], op.getResults()))
    heldBy[stage][old] = made;
  return success();
}

LogicalResult Outliner::run() {
  collect();
  for (int64_t stage = 0; stage < stages; ++stage)
    if (failed(createStage(stage)))
      return failure();
  for (OpOperand &operand : output->getOpOperands()) {
    Operation *producer = operand.get().getDefiningOp();
    int64_t stage = producer && !isEverywhere(producer) ? stageOf(producer) : 0;
    operand.set(heldBy[stage].lookup(operand.get()));
  }
  for (std::vector<Operation *> &ops : llvm::reverse(opsOf))
    for (Operation *op : llvm::reverse(ops))
      op->erase();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isEverywhere(&op) && op.use_empty())
      op.erase();
  return success();
}

namespace {
struct OutlineStages : ax::impl::OutlineStagesBase<OutlineStages> {
  using OutlineStagesBase::OutlineStagesBase;

  void runOnOperation() override {
    PlanOp plan = getOperation();
    int64_t stages = plan.getMesh().axisSize("pipe");
    for (ProgramOp program : plan.getBody().getOps<ProgramOp>())
      if (failed(Outliner(program, stages).run()))
        return signalPassFailure();
    recordHolders(plan);
  }

  /// Each state lists the stages that load it; one that none loads goes.
  void recordHolders(PlanOp plan) {
    llvm::DenseMap<StringAttr, std::set<int64_t>> holders;
    plan.walk([&](StageOp stage) {
      stage.walk([&](LoadOp load) {
        holders[load.getStateAttr().getAttr()].insert(stage.getOn());
      });
      stage.walk([&](StoreOp store) {
        holders[store.getStateAttr().getAttr()].insert(stage.getOn());
      });
    });
    Builder builder(plan.getContext());
    for (StateOp state :
         llvm::make_early_inc_range(plan.getBody().getOps<StateOp>())) {
      auto it = holders.find(state.getSymNameAttr());
      if (it == holders.end()) {
        state.erase();
        continue;
      }
      SmallVector<int64_t> stages(it->second.begin(), it->second.end());
      state.setStagesAttr(builder.getDenseI64ArrayAttr(stages));
    }
  }
};
} // namespace
