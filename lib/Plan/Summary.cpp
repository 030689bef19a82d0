//===- Summary.cpp - A plan in a few lines --------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Report.h"

#include "ax/Dialect/PlanAttrs.h"
#include "ax/Dialect/ProgramNames.h"
#include "ax/Plan/Plan.h"
#include "ax/Support/ByteText.h"
#include "ax/Support/TimeText.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <array>
#include <map>

using namespace mlir;
using namespace ax;
using namespace ax::plan;

static void printMesh(const Report &report, llvm::raw_ostream &os) {
  const sharding::Mesh &mesh = report.mesh;
  os << "plan @" << PlanOp(report.plan).getSymName() << ": " << mesh.numRanks()
     << (mesh.numRanks() == 1 ? " rank" : " ranks");
  std::string axes;
  for (const sharding::Axis &axis : mesh.getAxes())
    if (axis.size > 1 && !axis.inTime)
      axes += (axes.empty() ? "" : " x ") + axis.name + " " +
              std::to_string(axis.size);
  if (!axes.empty())
    os << " = " << axes;
  if (mesh.numTimeSlices() > 1)
    os << ", " << mesh.numTimeSlices() << " micro-batches";
  os << '\n';
  for (const sharding::Axis &axis : mesh.getAxes()) {
    if (axis.size == 1 || axis.inTime)
      continue;
    os << "  " << axis.name << ": " << mesh.numRanks() / axis.size
       << (mesh.numRanks() == axis.size ? " group of " : " groups of ")
       << axis.size << ", the first ranks";
    for (int64_t rank : mesh.group({mesh.whole(axis.name)}, 0)) {
      os << ' ' << rank;
      if (axis.size > 8 && rank > 0) {
        os << " ...";
        break;
      }
    }
    os << '\n';
  }
}

/// Predictions are worth as much as what is known of the machine.
static void printMachine(const cost::Machine &machine, bool isMeasured,
                         llvm::raw_ostream &os) {
  os << "  times are predictions for machine '" << machine.name
     << "': " << countText(machine.flopsPerSecond, "FLOP/s");
  if (machine.narrowFlopsPerSecond != machine.flopsPerSecond)
    os << " (" << countText(machine.narrowFlopsPerSecond, "FLOP/s")
       << " of 16 bits)";
  os << " and " << countText(machine.bytesPerSecond, "B/s")
     << " a rank, exchanges " << timeText(machine.link.latency) << " and "
     << countText(machine.link.bytesPerSecond, "B/s")
     << (machine.overlapsCollectives ? " while it computes" : "");
  if (machine.ranksPerHost)
    os << ", between hosts of " << machine.ranksPerHost << " ranks "
       << timeText(machine.hostLink.latency) << " and "
       << countText(machine.hostLink.bytesPerSecond, "B/s");
  os << (isMeasured ? "\n" : "; yours was not measured\n");
}

namespace {
/// Collectives of one kind over the same axes.
struct Traffic {
  int64_t count = 0, bytes = 0;
};
} // namespace

static void printStage(const StageReport &stage, const sharding::Mesh &mesh,
                       llvm::raw_ostream &os) {
  double whole = 0, part = 0;
  for (const Layer &layer : stage.layers) {
    whole += layer.wholeFlops;
    part += layer.rankFlops;
  }
  os << "    stage " << stage.on << ": " << stage.numOps << " ops, about "
     << timeText(stage.seconds) << "; weights "
     << bytesText(stage.rankWeightBytes) << " of "
     << bytesText(stage.wholeWeightBytes) << ", peak memory "
     << bytesText(stage.peakBytes()) << ", " << countText(part, "FLOP")
     << " of " << countText(whole, "FLOP") << " a rank\n";
  if (stage.memory) {
    const cost::RankMemory &memory = *stage.memory;
    os << "      memory of a rank: weights " << bytesText(memory.weights);
    auto part = [&](const char *name, int64_t bytes) {
      if (bytes)
        os << ", " << name << ' ' << bytesText(bytes);
    };
    part("gradients", memory.gradients);
    part("optimizer", memory.optimizer);
    part("carried", memory.carried);
    part("activations", memory.activations);
    part("constants", memory.constants);
    part("transfers", memory.slots);
    part("inputs and outputs", memory.ports);
    os << '\n';
  }
  if (stage.numPrepared)
    os << "      " << stage.numPrepared << " prepared states, "
       << bytesText(stage.preparedBytes) << " a rank\n";
  if (stage.numRecomputed)
    os << "      " << stage.numRecomputed << " ops computed again, "
       << countText(stage.recomputedFlops, "FLOP") << " a rank\n";
  std::map<std::string, Traffic> traffic;
  for (const Collective &collective : stage.collectives) {
    Traffic &entry = traffic[std::string(toString(collective.kind)) + " over " +
                             axesText(collective.axes, mesh)];
    entry.count += collective.times;
    entry.bytes += collective.bytes * collective.times;
  }
  for (const auto &[what, entry] : traffic)
    os << "      " << entry.count << " x " << what << ", "
       << bytesText(entry.bytes) << " a rank\n";
}

void plan::summarise(ModuleOp module, llvm::raw_ostream &os,
                     const cost::Predictions &predictions) {
  Report report = makeReport(module, predictions);
  printMesh(report, os);
  printMachine(report.machine,
               isa_and_present<DictionaryAttr>(report.plan->getAttr(kMachine)),
               os);
  for (const ProgramReport &program : report.programs) {
    StringRef name = ProgramOp(program.op).getSymName();
    os << "  program @" << name << ", about " << timeText(program.seconds)
       << (name == preparationProgram ? ", once when the plan is loaded"
                                      : " a step");
    if (program.stages.size() > 1)
      os << ", of which stages wait "
         << llvm::formatv("{0:F0} %", 100 * program.bubble);
    os << '\n';
    for (const StageReport &stage : program.stages)
      printStage(stage, report.mesh, os);
    std::map<std::array<int64_t, 4>, int64_t> transfers;
    for (const TransferReport &transfer : program.transfers) {
      TransferOp op = transfer.op;
      ++transfers[{static_cast<int64_t>(op.getFrom()),
                   static_cast<int64_t>(op.getTo()), transfer.bytes,
                   static_cast<int64_t>(op.getSlots())}];
    }
    for (auto [like, count] : transfers) {
      auto [from, to, bytes, slots] = like;
      os << "    stage " << from << " to " << to << ": ";
      if (count > 1)
        os << count << " x ";
      os << bytesText(bytes) << " a rank and micro-batch, " << slots
         << " slots\n";
    }
  }
}
