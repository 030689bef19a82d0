//===- VerifySchedule.cpp - Every action once, nobody waits for ever ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Verifier.h"

#include "ax/Cost/Schedule.h"
#include "ax/Cost/Simulate.h"
#include "ax/Dialect/Actions.h"
#include "ax/Dialect/MeshAxes.h"
#include "ax/Exchange/Order.h"
#include "ax/Support/Error.h"

#include "llvm/ADT/StringExtras.h"

#include <map>
#include <set>

using namespace mlir;
using namespace ax;

namespace {

class ScheduleVerifier {
public:
  ScheduleVerifier(ProgramOp program, ScheduleOp schedule,
                   const sharding::Mesh &mesh)
      : program(program), schedule(schedule), mesh(mesh),
        stages(mesh.axisSize(meshAxis::pipe)) {}

  void verify();

private:
  struct Stage {
    std::vector<StageOp> lists;
    std::vector<ActionKind> kinds;
    std::vector<cost::SimulatedAction> order;
  };

  InFlightDiagnostic fault(size_t stage) {
    return schedule.emitOpError() << "of stage " << stage << ": ";
  }
  /// What the schedule that it is called after says of such a pipeline.
  LogicalResult checkPolicy();
  LogicalResult parse(size_t number, StringRef text);
  LogicalResult checkOrders();
  /// Lists of one stage leave values for each other in slots.
  void checkKept(size_t number);
  void checkRead(size_t number, const cost::SimulatedAction &reader,
                 OpResult value);
  void checkStates(size_t number);
  /// Of each stage.
  std::vector<std::vector<int32_t>> findRanks() const;
  void checkEnd();
  bool isOnceAStep(Operation *stage) const {
    return actionOf(cast<StageOp>(stage))->isOnceAStep();
  }

  ProgramOp program;
  ScheduleOp schedule;
  const sharding::Mesh &mesh;
  std::vector<Stage> stages;
  /// The micro-batches for which a list ran, and for each of its values the
  /// one in each slot.
  llvm::DenseMap<Operation *, std::set<int64_t>> done;
  llvm::DenseMap<Value, std::vector<int64_t>> slots;
};

} // namespace

/// `F0 F1`: each list of the stage once for each micro-batch, or once a step.
LogicalResult ScheduleVerifier::parse(size_t number, StringRef text) {
  Stage &stage = stages[number];
  int64_t slices = mesh.numTimeSlices();
  std::set<std::string> seen;
  for (StringRef entry : llvm::split(text, ' ')) {
    if (entry.empty())
      continue;
    auto action = parseAction(entry);
    if (!action)
      return fault(number)
             << "'" << entry
             << "' is no action; F0 is the forward of micro-batch 0";
    if (action->microBatch >= slices)
      return fault(number) << "there is no micro-batch " << action->microBatch
                           << " of " << slices;
    auto kind = llvm::find(stage.kinds, action->kind);
    if (kind == stage.kinds.end())
      return fault(number) << "'" << entry << "' is done by no ax.stage on "
                           << number;
    std::string name = toString(*action);
    if (!seen.insert(name).second)
      return fault(number) << name << " stands there twice";
    stage.order.push_back(
        {action->microBatch, kind - stage.kinds.begin(), name});
  }
  for (ActionKind kind : stage.kinds)
    for (int64_t slice = 0; slice < (kind.isOnceAStep() ? 1 : slices); ++slice)
      if (std::string name = toString({kind, slice}); !seen.count(name))
        return fault(number) << name << " is missing";
  return success();
}

/// A name that is no schedule's is the reader's own. Of one that is, sizes have
/// to be possible; the order may be another, as whoever edits a plan may have
/// found a better one: what it needs is proven below.
LogicalResult ScheduleVerifier::checkPolicy() {
  const cost::PipelineSchedules &all = cost::PipelineSchedules::get();
  if (!llvm::is_contained(all.names(), schedule.getPolicy()))
    return success();
  cost::Pipeline pipeline;
  pipeline.coordinates = static_cast<int64_t>(stages.size());
  pipeline.microBatches = mesh.numTimeSlices();
  pipeline.backward = 0;
  for (const Stage &stage : stages)
    for (const ActionKind &kind : stage.kinds) {
      if (kind.action == Action::Forward)
        pipeline.parts = std::max(pipeline.parts, kind.part + 1);
      if (kind.action == Action::Backward)
        pipeline.backward = 2;
      if (kind.action == Action::Weights)
        pipeline.weights = 1;
    }
  // Without a pipeline all of them are the same.
  if (!pipeline.trains() || pipeline.coordinates == 1)
    return success();
  const cost::PipelineSchedule *known =
      llvm::cantFail(all.parse(schedule.getPolicy()));
  if (llvm::Error error = cost::check(*known, pipeline))
    return schedule.emitOpError()
           << "cannot be: " << describeError(std::move(error)).message
           << "; an order of your own is free under another name";
  return success();
}

/// Slots are used round robin, by those who write and those who read.
LogicalResult ScheduleVerifier::checkOrders() {
  std::optional<std::vector<int64_t>> first;
  for (auto [number, stage] : llvm::enumerate(stages))
    for (auto [i, kind] : llvm::enumerate(stage.kinds)) {
      if (kind.isOnceAStep())
        continue;
      std::vector<int64_t> order;
      for (const cost::SimulatedAction &action : stage.order)
        if (action.list == static_cast<int64_t>(i))
          order.push_back(action.microBatch);
      if (!first)
        first = order;
      if (order != *first)
        return fault(number)
               << "takes micro-batches in another order than stage 0, so it "
                  "would read slots that hold others";
      bool addsUp =
          llvm::any_of(stage.lists[i].getResults(), [&](OpResult result) {
            return isAccumulated(result, mesh);
          });
      if (addsUp && order.front() != 0)
        return fault(number) << "sums over micro-batches start with "
                                "micro-batch 0, which is not the first";
    }
  return success();
}

void ScheduleVerifier::checkRead(size_t number,
                                 const cost::SimulatedAction &reader,
                                 OpResult value) {
  Operation *writer = value.getOwner();
  Operation *list = stages[number].lists[reader.list];
  const std::set<int64_t> &written = done[writer];
  bool isSum = isAccumulated(value, mesh);
  const sharding::Layout &layout = getLayout(tensorType(value), mesh);
  sharding::SubAxes used = layout.usedAxes();
  auto report = [&] {
    return fault(number) << reader.name << " takes result "
                         << value.getResultNumber() << " of @"
                         << cast<StageOp>(writer).getSymName() << ", ";
  };
  if (isOnceAStep(list)) {
    if (written.size() < size_t(isSum ? mesh.numTimeSlices() : 1))
      report() << "which is not there yet";
    return;
  }
  if (isSum) {
    report() << "which is being added up for what is done once a step";
    return;
  }
  if (inTime(used, mesh).empty()) {
    if (written.empty())
      report() << "which is not there yet";
    return;
  }
  if (!written.count(reader.microBatch)) {
    report() << "which is not there yet";
    return;
  }
  const std::vector<int64_t> &held = slots[value];
  if (int64_t last = held[reader.microBatch % held.size()];
      last != reader.microBatch)
    report() << "whose slot of " << held.size() << " micro-batch " << last
             << " has taken";
}

void ScheduleVerifier::checkKept(size_t number) {
  done.clear();
  for (const cost::SimulatedAction &action : stages[number].order) {
    StageOp list = stages[number].lists[action.list];
    for (Value operand : list.getOperands())
      if (auto result = dyn_cast<OpResult>(operand);
          result && isa<StageOp>(result.getOwner()))
        checkRead(number, action, result);
    done[list].insert(action.microBatch);
    for (OpResult result : list.getResults()) {
      std::vector<int64_t> &held = slots[result];
      if (held.empty())
        held.resize(keptSlots(result, mesh));
      held[action.microBatch % held.size()] = action.microBatch;
    }
  }
}

/// A step sees one value of each state.
void ScheduleVerifier::checkStates(size_t number) {
  std::set<StringRef> stored;
  for (const cost::SimulatedAction &action : stages[number].order) {
    StageOp list = stages[number].lists[action.list];
    for (auto load : list.getBody().getOps<LoadOp>())
      if (stored.count(load.getState()))
        fault(number) << action.name << " loads @" << load.getState()
                      << " after it was stored";
    for (auto store : list.getBody().getOps<StoreOp>())
      stored.insert(store.getState());
  }
}

std::vector<std::vector<int32_t>> ScheduleVerifier::findRanks() const {
  sharding::SubAxes pipe;
  if (mesh.find(meshAxis::pipe))
    pipe.push_back(mesh.whole(meshAxis::pipe));
  std::vector<std::vector<int32_t>> ranks(stages.size());
  for (int64_t rank = 0, e = mesh.numRanks(); rank < e; ++rank)
    ranks[mesh.index(pipe, mesh.coordinates(rank))].push_back(
        static_cast<int32_t>(rank));
  return ranks;
}

void ScheduleVerifier::checkEnd() {
  std::vector<cost::SimulatedStage> simulated;
  for (auto [stage, ranks] : llvm::zip_equal(stages, findRanks()))
    simulated.push_back({std::vector<double>(stage.lists.size(), 1),
                         stage.order, exchange::describeRanks(ranks)});
  std::vector<cost::SimulatedTransfer> transfers;
  for (TransferOp transfer : program.getBody().getOps<TransferOp>()) {
    auto sender = transfer.getOperand().getDefiningOp<StageOp>();
    if (!sender || transfer.getResult().use_empty())
      continue;
    auto receiver = dyn_cast<StageOp>(*transfer.getResult().getUsers().begin());
    if (!receiver)
      continue;
    if (isOnceAStep(sender) != isOnceAStep(receiver)) {
      transfer.emitOpError()
          << "is sent for each micro-batch and received once "
             "a step, or the reverse";
      continue;
    }
    auto listOf = [&](StageOp list) {
      auto &lists = stages[list.getOn()].lists;
      return llvm::find(lists, list) - lists.begin();
    };
    transfers.push_back({static_cast<int64_t>(sender.getOn()),
                         static_cast<int64_t>(receiver.getOn()),
                         static_cast<int64_t>(transfer.getSlots()), 0,
                         listOf(sender), listOf(receiver),
                         getNodeName(transfer).str()});
  }
  cost::Simulation simulation = cost::simulate(simulated, transfers);
  if (!simulation.deadlock.empty())
    schedule.emitOpError() << "never ends: " << simulation.deadlock;
  else if (!simulation.stuck.empty())
    schedule.emitOpError() << "never ends where ranks receive ahead: "
                           << llvm::join(simulation.stuck, "; ");
}

void ScheduleVerifier::verify() {
  for (StageOp list : program.getBody().getOps<StageOp>()) {
    auto kind = actionOf(list);
    if (!kind)
      return;
    stages[list.getOn()].lists.push_back(list);
    stages[list.getOn()].kinds.push_back(*kind);
  }
  if (failed(checkPolicy()))
    return;
  for (auto [number, text] :
       llvm::enumerate(schedule.getOrders().getAsValueRange<StringAttr>()))
    if (failed(parse(number, text)))
      return;
  if (failed(checkOrders()))
    return;
  for (size_t number = 0; number < stages.size(); ++number) {
    checkKept(number);
    checkStates(number);
  }
  checkEnd();
}

void plan::verifySchedule(ProgramOp program, const sharding::Mesh &mesh) {
  auto schedules = program.getBody().getOps<ScheduleOp>();
  if (!llvm::hasSingleElement(schedules)) {
    program.emitOpError("needs exactly one ax.schedule");
    return;
  }
  ScheduleVerifier(program, *schedules.begin(), mesh).verify();
}
