//===- Report.cpp - What a plan makes every rank hold and do --------------===//
#include "Report.h"

#include "ax/Cost/Simulate.h"
#include "ax/Dialect/Actions.h"
#include "ax/Sharding/Digits.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

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

std::string plan::bytesText(int64_t bytes) {
  const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = bytes;
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit)
    value /= 1024;
  return llvm::formatv(unit == 0 ? "{0:F0} {1}" : "{0:F1} {1}", value,
                       units[unit]);
}

namespace {

/// Of a list, in its order.
struct Contraction {
  Operation *op;
  double flops;
};

class Reporter {
public:
  Reporter(const Mesh &mesh, const cost::Machine &machine,
           const StageMemory &memory)
      : mesh(mesh), machine(machine), memory(memory) {}

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
  NamedSplit split(StringRef name, Value value, int64_t dim) const {
    sharding::DimLayout layout = getLayout(tensorType(value), mesh).dims[dim];
    return {name.str(), layout.size(), layout.axes()};
  }
  /// Dimensions `first` .. `last` - 1 of `value`, as one.
  NamedSplit split(StringRef name, Value value, int64_t first,
                   int64_t last) const {
    NamedSplit all{name.str(), 1, {}};
    for (int64_t dim = first; dim < last; ++dim) {
      NamedSplit one = split(name, value, dim);
      all.size *= one.size;
      llvm::append_range(all.axes, one.axes);
    }
    return all;
  }

  const Mesh &mesh;
  const cost::Machine &machine;
  const StageMemory &memory;
};

} // namespace

static bool isWeight(Value value) {
  return value.getDefiningOp<LoadOp>() != nullptr;
}

std::optional<Layer> Reporter::layerOf(Operation *op) {
  Layer layer;
  layer.op = op;
  bool known =
      llvm::TypeSwitch<Operation *, bool>(op)
          .Case<LinearOp>([&](LinearOp linear) {
            int64_t last = tensorType(linear.getX()).getRank() - 1;
            layer.kind = "linear";
            layer.splits = {split("k", linear.getX(), last),
                            split("n", linear.getResult(), last),
                            split("rows", linear.getResult(), 0, last)};
            return true;
          })
          .Case<ConvOp, ConvTransposeOp>([&](auto conv) {
            layer.kind = "convolution";
            layer.splits = {split("input channels", conv.getX(), 1),
                            split("output channels", conv.getResult(), 1),
                            split("batch", conv.getResult(), 0)};
            return true;
          })
          .Case<AttentionOp>([&](AttentionOp attention) {
            layer.kind = "attention";
            layer.splits = {split("heads", attention.getQ(), 1),
                            split("kv heads", attention.getK(), 1),
                            split("queries", attention.getQ(), 2),
                            split("batch", attention.getQ(), 0)};
            return true;
          })
          .Case<DotOp>([&](DotOp dot) {
            layer.kind = "dot";
            int64_t batch = dot.getLhsBatch().size();
            int64_t left = tensorType(dot.getLhs()).getRank() -
                           dot.getLhsContract().size();
            int64_t rank = tensorType(dot.getResult()).getRank();
            layer.splits = {split("batch", dot.getResult(), 0, batch),
                            split("rows", dot.getResult(), batch, left),
                            split("columns", dot.getResult(), left, rank)};
            NamedSplit summed{"k", 1, {}};
            for (int64_t dim : dot.getLhsContract()) {
              NamedSplit one = split("k", dot.getLhs(), dim);
              summed.size *= one.size;
              llvm::append_range(summed.axes, one.axes);
            }
            layer.splits.push_back(summed);
            return true;
          })
          .Case<GatherOp>([&](GatherOp gather) {
            if (!isWeight(gather.getOperand()) || gather.getAxis() != 0 ||
                tensorType(gather.getOperand()).getRank() != 2)
              return false;
            layer.kind = "embedding";
            layer.splits = {split("vocabulary", gather.getOperand(), 0),
                            split("hidden", gather.getOperand(), 1)};
            return true;
          })
          .Default([](Operation *) { return false; });
  if (!known)
    return std::nullopt;
  layer.node = getNodeName(op).str();
  layer.wholeFlops = cost::wholeFlops(op);
  layer.rankFlops = cost::contractionFlops(op, mesh) *
                    timesOf(op->getParentOfType<StageOp>());
  SubAxes used;
  for (const NamedSplit &part : layer.splits)
    llvm::append_range(used, part.axes);
  for (const sharding::Axis &axis : mesh.getAxes()) {
    if (axis.size == 1 || axis.inTime || axis.name == "pipe")
      continue;
    // A table's rows are looked up, not multiplied: its batch is not its own.
    if (layer.kind == "embedding" && axis.name != "row" && axis.name != "col")
      continue;
    llvm::append_range(layer.replicated,
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
  for (auto [list, seconds] : llvm::zip_equal(lists, report.cost.seconds))
    report.seconds += seconds * timesOf(list);
  if (auto it = memory.find(lists.front()); it != memory.end())
    report.memory = it->second;
  llvm::DenseSet<Attribute> held;
  for (StageOp list : lists) {
    std::vector<Contraction> contractions;
    for (Operation &op : list.getBody().front())
      if (double flops = cost::contractionFlops(&op, mesh); flops > 0)
        contractions.push_back({&op, flops});
    for (Operation &op : list.getBody().front()) {
      report.numOps += !isa<LoadOp, ConstantOp, YieldOp>(op);
      if (op.hasAttr("recomputed")) {
        ++report.numRecomputed;
        report.recomputedFlops += cost::contractionFlops(&op, mesh) *
                                  static_cast<double>(timesOf(list));
      }
      if (auto load = dyn_cast<LoadOp>(op)) {
        if (!held.insert(load.getStateAttr()).second)
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
        machine.collectiveLatency + bytes / machine.collectiveBytesPerSecond;
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
  std::vector<std::vector<StageOp>> lists(mesh.axisSize("pipe"));
  for (StageOp stage : program.getBody().getOps<StageOp>())
    lists[stage.getOn()].push_back(stage);
  for (auto [on, ofStage] : llvm::enumerate(lists))
    result.stages.push_back(report(on, ofStage));
  simulate(result);
  return result;
}

Report plan::makeReport(ModuleOp module, const StageMemory &memory) {
  Report report;
  report.plan = *module.getOps<PlanOp>().begin();
  report.mesh = report.plan.getMesh();
  for (ProgramOp program : report.plan.getBody().getOps<ProgramOp>())
    report.programs.push_back(
        Reporter(report.mesh, report.machine, memory).report(program));
  return report;
}
