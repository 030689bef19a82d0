//===- Report.cpp - What a plan makes every rank hold and do --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Report.h"

#include "ax/Cost/Simulate.h"
#include "ax/Dialect/Actions.h"
#include "ax/Dialect/MeshAxes.h"
#include "ax/Dialect/ProgramNames.h"
#include "ax/Sharding/Digits.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace ax;
using namespace ax::plan;
using sharding::Mesh;
using sharding::SubAxes;

std::string plan::axesText(const SubAxes &axes, const Mesh &mesh) {
  return "{" +
         llvm::join(llvm::map_range(axes,
                                    [&](const sharding::SubAxis &axis) {
                                      return sharding::toString(axis, mesh);
                                    }),
                    ", ") +
         "}";
}

std::string plan::splitsText(const Layer &layer, const Mesh &mesh) {
  std::string text;
  for (const NamedSplit &split : layer.splits)
    if (!split.axes.empty())
      text += (text.empty() ? "" : ", ") + split.name + " over " +
              axesText(split.axes, mesh);
  return text;
}

namespace {

/// A contraction of a list, and the FLOPs of one rank that it takes.
struct Contraction {
  Operation *op;
  double flops;
};

class Reporter {
public:
  Reporter(const Mesh &mesh, const cost::Machine &machine,
           const cost::Predictions &predictions)
      : mesh(mesh), machine(machine), predictions(predictions) {}

  ProgramReport report(ProgramOp program);

private:
  StageReport report(int64_t on, std::vector<StageOp> lists);
  int64_t timesOf(StageOp list) const {
    return actionOf(list)->isOnceAStep() ? 1 : mesh.numTimeSlices();
  }
  void simulate(ProgramReport &result);
  std::optional<Layer> layerOf(Operation *op);
  Collective collectiveOf(CollectiveOpInterface op,
                          ArrayRef<Contraction> contractions);
  const Mesh &mesh;
  const cost::Machine &machine;
  const cost::Predictions &predictions;
};

} // namespace

std::optional<Layer> Reporter::layerOf(Operation *op) {
  std::optional<Layer> layer = findLayer(op, mesh);
  if (!layer)
    return std::nullopt;
  layer->rankFlops = cost::contractionFlops(op, mesh) *
                     timesOf(op->getParentOfType<StageOp>());
  SubAxes used;
  for (const NamedSplit &part : layer->splits)
    llvm::append_range(used, part.axes);
  for (const sharding::Axis &axis : mesh.getAxes()) {
    if (axis.size == 1 || axis.inTime || axis.name == meshAxis::pipe)
      continue;
    // A table's rows are looked up, not multiplied: its batch is not its own.
    if (layer->kind == "embedding" && axis.name != meshAxis::row &&
        axis.name != meshAxis::col)
      continue;
    llvm::append_range(layer->replicated,
                       sharding::withoutAxes({mesh.whole(axis.name)}, used));
  }
  return layer;
}

/// The nearest layer that `value` was made from; empty when none is near.
static std::string sourceNode(Value value) {
  for (int steps = 0; steps < 64; ++steps) {
    Operation *op = value.getDefiningOp();
    if (!op)
      return "";
    if (StringRef node = getNodeName(op); !node.empty())
      return node.str();
    if (op->getNumOperands() == 0)
      return "";
    value = op->getOperand(0);
  }
  return "";
}

static std::string userNode(Value value) {
  for (int steps = 0; steps < 64 && !value.use_empty(); ++steps) {
    Operation *op = *value.getUsers().begin();
    if (StringRef node = getNodeName(op); !node.empty())
      return node.str();
    if (op->getNumResults() == 0)
      return "";
    value = op->getResult(0);
  }
  return "";
}

/// What goes on while it does.
static void findHidden(Collective &collective, ArrayRef<Contraction> all) {
  if (!collective.op->hasAttr("start"))
    return;
  Operation *wait = *collective.op->user_begin();
  double largest = 0;
  const auto *first = llvm::partition_point(all, [&](const Contraction &one) {
    return one.op->isBeforeInBlock(collective.op);
  });
  for (; first != all.end() && first->op->isBeforeInBlock(wait); ++first) {
    collective.hiddenFlops += first->flops;
    if (first->flops > largest) {
      largest = first->flops;
      collective.behind = getNodeName(first->op).str();
    }
  }
}

Collective Reporter::collectiveOf(CollectiveOpInterface op,
                                  ArrayRef<Contraction> contractions) {
  Collective found;
  found.op = op;
  found.kind = op.getStepKind();
  found.axes = op.getMovedAxes().resolve(mesh);
  if (StringAttr cause = op.getCause())
    found.because = cause.str();
  found.bytes = cost::payloadBytes(op, mesh);
  found.times = timesOf(op->getParentOfType<StageOp>());
  found.node = getNodeName(op).str();
  bool reduces = found.kind == sharding::StepKind::AllReduce ||
                 found.kind == sharding::StepKind::ReduceScatter;
  found.tensors = op->getNumOperands();
  for (bool source : {reduces, !reduces})
    if (found.node.empty())
      found.node =
          source ? sourceNode(op->getOperand(0)) : userNode(op->getResult(0));
  findHidden(found, contractions);
  return found;
}

StageReport Reporter::report(int64_t on, std::vector<StageOp> lists) {
  StageReport report;
  report.on = on;
  report.lists = lists;
  report.cost = cost::stageCost(lists, mesh, machine);
  for (auto [list, seconds] : llvm::zip_equal(lists, report.cost.seconds)) {
    if (auto known = predictions.find(list); known != predictions.end()) {
      seconds = known->second.seconds;
      report.memory = known->second.memory;
    }
    report.seconds += seconds * timesOf(list);
  }
  bool isPreparing = lists.front()->getParentOfType<ProgramOp>().getSymName() ==
                     preparationProgram;
  llvm::DenseSet<Attribute> held;
  for (StageOp list : lists) {
    std::vector<Contraction> contractions;
    for (Operation &op : list.getBody().front())
      if (double flops = cost::contractionFlops(&op, mesh); flops > 0)
        contractions.push_back({&op, flops});
    for (Operation &op : list.getBody().front()) {
      report.numOps += !isSource(&op) && !isa<YieldOp>(op);
      if (op.hasAttr("recomputed")) {
        ++report.numRecomputed;
        report.recomputedFlops += cost::contractionFlops(&op, mesh) *
                                  static_cast<double>(timesOf(list));
      }
      if (auto store = dyn_cast<StoreOp>(op); store && isPreparing) {
        ++report.numPrepared;
        report.preparedBytes +=
            cost::localBytes(tensorType(store.getOperand()), mesh);
      } else if (auto load = dyn_cast<LoadOp>(op)) {
        auto state = SymbolTable::lookupNearestSymbolFrom<StateOp>(
            list, load.getStateAttr());
        // What an optimizer keeps begins as zeros, and is no weight.
        if (!held.insert(load.getStateAttr()).second || state.isZeroAtFirst())
          continue;
        RankedTensorType type = tensorType(load.getResult());
        report.wholeWeightBytes += cost::localBytes(withoutLayout(type), mesh);
        report.rankWeightBytes += cost::localBytes(type, mesh);
      } else if (auto collective = dyn_cast<CollectiveOpInterface>(op)) {
        if (cost::isSent(collective, mesh))
          report.collectives.push_back(collectiveOf(collective, contractions));
      } else if (auto layer = layerOf(&op)) {
        report.layers.push_back(std::move(*layer));
      }
    }
  }
  return report;
}

/// The schedule, with what its lists and transfers take.
void Reporter::simulate(ProgramReport &result) {
  auto listOf = [&](StageOp list) {
    const std::vector<StageOp> &lists = result.stages[list.getOn()].lists;
    return llvm::find(lists, list) - lists.begin();
  };
  std::vector<cost::SimulatedStage> stages;
  for (const StageReport &stage : result.stages)
    stages.push_back({stage.cost.seconds, {}});
  auto schedule = *result.op.getBody().getOps<ScheduleOp>().begin();
  for (auto [stage, report, order] :
       llvm::zip_equal(stages, result.stages,
                       schedule.getOrders().getAsValueRange<StringAttr>()))
    for (StringRef text : llvm::split(order, ' '))
      if (auto action = parseAction(text))
        for (StageOp list : report.lists)
          if (*actionOf(list) == action->kind)
            stage.order.push_back(
                {action->microBatch, listOf(list), text.str()});
  std::vector<cost::SimulatedTransfer> transfers;
  for (TransferOp transfer : result.op.getBody().getOps<TransferOp>()) {
    auto sender = transfer.getOperand().getDefiningOp<StageOp>();
    auto receiver = cast<StageOp>(*transfer.getResult().getUsers().begin());
    int64_t bytes = cost::localBytes(tensorType(transfer.getResult()), mesh);
    double seconds =
        cost::linkBetween(transfer.getFrom(), transfer.getTo(), mesh, machine)
            .seconds(bytes);
    result.transfers.push_back({transfer, bytes});
    result.stages[transfer.getFrom()].sendSeconds += seconds * timesOf(sender);
    transfers.push_back({static_cast<int64_t>(transfer.getFrom()),
                         static_cast<int64_t>(transfer.getTo()),
                         static_cast<int64_t>(transfer.getSlots()), seconds,
                         listOf(sender), listOf(receiver)});
  }
  cost::Simulation simulation = cost::simulate(stages, transfers);
  result.seconds = simulation.seconds;
  double busy = 0;
  for (double seconds : simulation.busy)
    busy += seconds;
  if (result.seconds > 0)
    result.bubble = 1 - busy / (result.seconds * stages.size());
}

ProgramReport Reporter::report(ProgramOp program) {
  ProgramReport result;
  result.op = program;
  std::vector<std::vector<StageOp>> lists(mesh.axisSize(meshAxis::pipe));
  for (StageOp stage : program.getBody().getOps<StageOp>())
    lists[stage.getOn()].push_back(stage);
  for (auto [on, ofStage] : llvm::enumerate(lists))
    result.stages.push_back(report(on, ofStage));
  simulate(result);
  return result;
}

Report plan::makeReport(ModuleOp module, const cost::Predictions &predictions) {
  Report report;
  report.plan = *module.getOps<PlanOp>().begin();
  report.mesh = report.plan.getMesh();
  report.machine = cost::machineOf(report.plan);
  for (ProgramOp program : report.plan.getBody().getOps<ProgramOp>())
    report.programs.push_back(
        Reporter(report.mesh, report.machine, predictions).report(program));
  return report;
}

std::map<std::string, double>
plan::predictSteps(ModuleOp module, const cost::Predictions &predictions) {
  std::map<std::string, double> seconds;
  for (const ProgramReport &program : makeReport(module, predictions).programs)
    seconds[ProgramOp(program.op).getSymName().str()] = program.seconds;
  return seconds;
}

StepPrediction plan::predictStep(ModuleOp module,
                                 const cost::Predictions &predictions) {
  StepPrediction step;
  for (const ProgramReport &program :
       makeReport(module, predictions).programs) {
    // It trains, if there are several. A prompt comes once, and then tokens.
    StringRef name = ProgramOp(program.op).getSymName();
    if (name != preparationProgram && name != prefillProgram)
      step.seconds = std::max(step.seconds, program.seconds);
    for (const StageReport &stage : program.stages)
      step.peakBytes = std::max(step.peakBytes, stage.peakBytes());
  }
  return step;
}
