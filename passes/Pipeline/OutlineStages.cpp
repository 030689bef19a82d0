//===- OutlineStages.cpp - Operations into stages, values into transfers --===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "StageLists.h"
#include "ax/Passes/Passes.h"
#include "ax/Support/Error.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

#include <memory>
#include <set>

namespace ax {
#define GEN_PASS_DEF_OUTLINESTAGES
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;

namespace {

/// One program's lists become stages.
class Outliner {
public:
  Outliner(ProgramOp program, const sharding::Mesh &mesh,
           const cost::PipelineSchedule &schedule)
      : program(program), body(program.getBody().front()),
        output(cast<ReturnOp>(body.getTerminator())),
        placement(program, mesh, &schedule), lists(program, placement) {}

  /// Adds what the program reads on which coordinate.
  LogicalResult place(HeldStates &held);
  /// `held`: what all programs of the plan read.
  LogicalResult run(const HeldStates &held);

private:
  std::string nameOf(const StageList &list) const;
  /// What `from` gives, where `to` can take it.
  Value handOver(Value value, const StageList &from, const StageList &to);
  void create(StageList &list);
  void clone(Operation *op, IRMapping &mapping, OpBuilder &builder);

  ProgramOp program;
  Block &body;
  ReturnOp output;
  Placement placement;
  StageLists lists;
  bool isCut = false;
};

} // namespace

static const char *stageNameOf(Action action) {
  switch (action) {
  case Action::Forward:
    return "forward";
  case Action::Backward:
    return "backward";
  case Action::Weights:
    return "weights";
  case Action::Update:
    return "update";
  }
  llvm_unreachable("an action");
}

std::string Outliner::nameOf(const StageList &list) const {
  std::string name = "stage";
  if (isCut)
    name = stageNameOf(list.kind.action);
  name += std::to_string(list.on);
  if (list.kind.part != 0)
    name += "." + std::to_string(list.kind.part);
  return name;
}

Value Outliner::handOver(Value value, const StageList &from,
                         const StageList &to) {
  Value given = from.results.lookup(value);
  if (from.on == to.on)
    return given;
  OpBuilder builder(output);
  auto transfer = TransferOp::create(builder, value.getLoc(), given, from.on,
                                     to.on, /*slots=*/2);
  if (Operation *maker = value.getDefiningOp())
    setNodes(transfer, getMergedNodes(maker));
  return transfer;
}

/// Clones an operation with what it needs and is everywhere.
void Outliner::clone(Operation *op, IRMapping &mapping, OpBuilder &builder) {
  for (Value operand : op->getOperands())
    if (placement.isEverywhere(operand) && !mapping.contains(operand))
      clone(operand.getDefiningOp(), mapping, builder);
  Operation *made = builder.clone(*op, mapping);
  made->removeAttr(kStage);
  if (isCut)
    made->removeAttr(kAction);
  if (!isSource(made) && !isa<StoreOp>(made))
    setNodes(made, getMergedNodes(op));
}

void Outliner::create(StageList &list) {
  OpBuilder builder(output);
  SmallVector<Value> operands;
  for (auto [value, from] : list.takes)
    operands.push_back(from ? handOver(value, *from, list) : value);
  SmallVector<Type> results =
      llvm::map_to_vector(list.gives, [](Value v) { return v.getType(); });
  list.made = StageOp::create(builder, program.getLoc(), results, nameOf(list),
                              list.on, operands);
  setAction(list.made, list.kind);
  Block &block = list.made.getBody().emplaceBlock();
  IRMapping mapping;
  for (auto &entry : list.takes)
    mapping.map(entry.first,
                block.addArgument(entry.first.getType(), entry.first.getLoc()));
  builder.setInsertionPointToEnd(&block);
  for (Operation *op : list.ops)
    clone(op, mapping, builder);
  SmallVector<Value> yielded;
  for (Value value : list.gives) {
    if (!mapping.contains(value))
      clone(value.getDefiningOp(), mapping, builder);
    yielded.push_back(mapping.lookup(value));
  }
  YieldOp::create(builder, program.getLoc(), yielded);
  for (auto [old, made] : llvm::zip(list.gives, list.made.getResults()))
    list.results[old] = made;
}

LogicalResult Outliner::place(HeldStates &held) {
  if (failed(placement.run()))
    return failure();
  collectHeld(program, placement, held);
  return success();
}

LogicalResult Outliner::run(const HeldStates &held) {
  if (failed(lists.collect(held)))
    return failure();
  SmallVector<Operation *> old;
  for (Operation &op : body.without_terminator())
    old.push_back(&op);
  std::vector<StageList *> all = lists.inOrder();
  isCut = llvm::any_of(all, [](const StageList *list) {
    return list->kind.action != Action::Forward;
  });
  for (StageList *list : all)
    create(*list);
  for (OpOperand &operand : output->getOpOperands())
    operand.set(lists.giverOf(operand.get()).results.lookup(operand.get()));
  for (Operation *op : llvm::reverse(old))
    op->erase();
  return success();
}

namespace {
struct OutlineStages : ax::impl::OutlineStagesBase<OutlineStages> {
  using OutlineStagesBase::OutlineStagesBase;

  void runOnOperation() override {
    PlanOp plan = getOperation();
    sharding::Mesh mesh = plan.getMesh();
    std::vector<std::unique_ptr<Outliner>> outliners;
    HeldStates held;
    for (ProgramOp program : plan.getBody().getOps<ProgramOp>()) {
      outliners.push_back(
          std::make_unique<Outliner>(program, mesh, schedule.get()));
      if (failed(outliners.back()->place(held)))
        return signalPassFailure();
    }
    for (const auto &outliner : outliners)
      if (failed(outliner->run(held)))
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
