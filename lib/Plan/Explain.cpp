//===- Explain.cpp - How layers are split, why collectives are there ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Report.h"

#include "ax/Plan/Plan.h"
#include "ax/Sharding/Digits.h"
#include "ax/Support/ByteText.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <map>

using namespace mlir;
using namespace ax;
using namespace ax::plan;
using llvm::json::OStream;
using sharding::Mesh;

/// The attention that `layer` gives to or takes from, with no other layer of
/// weights between.
static AttentionOp findAttention(Operation *layer) {
  constexpr size_t maxOps = 256;
  for (bool forward : {true, false}) {
    SmallVector<Operation *> found;
    SmallPtrSet<Operation *, 32> seen;
    auto addNext = [&](Operation *op) {
      if (forward)
        found.append(op->user_begin(), op->user_end());
      else
        for (Value operand : op->getOperands())
          if (Operation *made = operand.getDefiningOp())
            found.push_back(made);
    };
    addNext(layer);
    while (!found.empty() && seen.size() < maxOps) {
      Operation *op = found.pop_back_val();
      if (auto attention = dyn_cast<AttentionOp>(op))
        return attention;
      if (!seen.insert(op).second || isa<LayerOpInterface, LoadOp, YieldOp>(op))
        continue;
      addNext(op);
    }
  }
  return {};
}

/// The heads of an attention beside `layer` that `parts` does not divide.
static std::string unevenHeads(const Layer &layer, int64_t parts) {
  AttentionOp attention = findAttention(layer.op);
  if (!attention)
    return "";
  for (auto [value, what] : {std::pair(attention.getQ(), " heads"),
                             std::pair(attention.getK(), " key/value heads")})
    if (int64_t heads = tensorType(value).getDimSize(1); heads % parts)
      return "the " + std::to_string(heads) + what + " of the attention '" +
             getNodeName(attention).str() + "' beside it";
  return "";
}

/// Why `layer` is computed again by every rank along some axes.
static std::string whyReplicated(const Layer &layer, const Mesh &mesh) {
  if (layer.replicated.empty())
    return "";
  std::string text = "replicated over " + axesText(layer.replicated, mesh);
  int64_t parts = sharding::numParts(layer.replicated);
  std::string uneven;
  bool divides = false;
  for (const NamedSplit &split : layer.splits) {
    if (split.name == "rows" || split.name == "queries")
      continue;
    int64_t rest = split.size;
    for (const sharding::SubAxis &axis : split.axes)
      rest = (rest + axis.size - 1) / axis.size;
    if (rest % parts == 0)
      divides = true;
    else
      uneven += (uneven.empty() ? "" : ", ") + split.name + " = " +
                std::to_string(split.size);
  }
  std::string odd = divides ? unevenHeads(layer, parts) : uneven;
  if (!odd.empty())
    return text + ": " + std::to_string(parts) + " does not divide " + odd;
  bool isPart = llvm::any_of(layer.splits, [&](const NamedSplit &split) {
    return llvm::any_of(split.axes, [&](const sharding::SubAxis &axis) {
      return llvm::any_of(layer.replicated,
                          [&](const sharding::SubAxis &other) {
                            return axis.axis == other.axis;
                          });
    });
  });
  return text + (isPart ? ": what is beside it is split no further"
                        : ": the strategy asks for nothing else");
}

static std::string partsText(const Layer &layer, const Mesh &mesh) {
  std::string text = splitsText(layer, mesh);
  std::string why = whyReplicated(layer, mesh);
  if (text.empty() && why.empty())
    return "whole";
  if (text.empty() || why.empty())
    return text + why;
  return text + "; " + why;
}

namespace {
/// Lines of which equal ones (a recurrent layer's steps) are one with a count,
/// where the first was.
class Lines {
public:
  void add(const std::string &line) { ++counts[line]; }
  void print(llvm::raw_ostream &os) const {
    for (const auto &[line, count] : counts) {
      os << "  ";
      if (count > 1)
        os << count << " x ";
      os << line << '\n';
    }
  }

private:
  llvm::MapVector<std::string, int64_t, std::map<std::string, unsigned>> counts;
};
} // namespace

static std::string describe(const Layer &layer, const Mesh &mesh) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << layer.kind << " '" << layer.node << "': " << partsText(layer, mesh);
  if (layer.wholeFlops > 0)
    os << llvm::formatv(" ({0:P1} of its FLOPs on a rank)",
                        layer.rankFlops / layer.wholeFlops);
  return text;
}

static std::string describe(const Collective &collective, const Mesh &mesh) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << toString(collective.kind) << " over " << axesText(collective.axes, mesh)
     << " at '" << collective.node << "', ";
  if (collective.tensors > 1)
    os << collective.tensors << " tensors, ";
  os << bytesText(collective.bytes) << " a rank";
  if (!collective.because.empty())
    os << ": " << collective.because;
  if (collective.hiddenFlops > 0)
    os << "; " << countText(collective.hiddenFlops, "FLOP") << " as of '"
       << collective.behind << "' lie between its start and its end";
  return text;
}

void plan::explain(ModuleOp module, llvm::raw_ostream &os) {
  Report report = makeReport(module);
  for (const ProgramReport &program : report.programs)
    for (const StageReport &stage : program.stages) {
      os << "program @" << ProgramOp(program.op).getSymName() << ", stage "
         << stage.on << '\n';
      Lines lines;
      for (const Layer &layer : stage.layers)
        lines.add(describe(layer, report.mesh));
      for (const Collective &collective : stage.collectives)
        lines.add(describe(collective, report.mesh));
      lines.print(os);
    }
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

static void writeLayer(OStream &json, const Layer &layer, const Mesh &mesh) {
  json.object([&] {
    json.attribute("kind", layer.kind);
    json.attribute("node", llvm::json::fixUTF8(layer.node));
    json.attributeObject("split", [&] {
      for (const NamedSplit &split : layer.splits)
        json.attributeObject(split.name, [&] {
          json.attribute("size", split.size);
          json.attribute("axes", axesText(split.axes, mesh));
          json.attribute("parts", sharding::numParts(split.axes));
        });
    });
    if (std::string why = whyReplicated(layer, mesh); !why.empty())
      json.attribute("why", why);
    json.attribute("flops", layer.wholeFlops);
    json.attribute("rank_flops", layer.rankFlops);
  });
}

static void writeCollective(OStream &json, const Collective &collective,
                            const Mesh &mesh) {
  json.object([&] {
    json.attribute("kind", toString(collective.kind));
    json.attribute("axes", axesText(collective.axes, mesh));
    json.attribute("node", llvm::json::fixUTF8(collective.node));
    json.attribute("because", llvm::json::fixUTF8(collective.because));
    json.attribute("bytes", collective.bytes);
    if (collective.hiddenFlops > 0) {
      json.attribute("hidden_flops", collective.hiddenFlops);
      json.attribute("behind", llvm::json::fixUTF8(collective.behind));
    }
    json.attributeArray("shapes", [&] {
      for (Value result : collective.op->getResults())
        json.array([&] {
          for (int64_t size : tensorType(result).getShape())
            json.value(size);
        });
    });
  });
}

static void writeMesh(OStream &json, const Mesh &mesh) {
  json.attributeObject("mesh", [&] {
    for (const sharding::Axis &axis : mesh.getAxes())
      json.attribute(axis.name, axis.size);
  });
  json.attribute("ranks", mesh.numRanks());
  json.attribute("micro_batches", mesh.numTimeSlices());
}

/// Calls `writeStage` for every stage, inside an object with mesh and programs.
template <typename Fn>
static std::string
toJSON(ModuleOp module, Fn writeStage,
       const cost::Predictions &predictions = cost::Predictions()) {
  Report report = makeReport(module, predictions);
  std::string text;
  llvm::raw_string_ostream os(text);
  OStream json(os, 1);
  json.object([&] {
    writeMesh(json, report.mesh);
    // What `seconds` are predictions for.
    json.attributeObject("machine", [&] {
      const cost::Machine &machine = report.machine;
      json.attribute("name", machine.name);
      json.attribute("flops_per_second", machine.flopsPerSecond);
      json.attribute("bytes_per_second", machine.bytesPerSecond);
      json.attribute("collective_latency", machine.link.latency);
      json.attribute("collective_bytes_per_second",
                     machine.link.bytesPerSecond);
      json.attribute("overlaps_collectives", machine.overlapsCollectives);
      json.attribute("narrow_flops_per_second", machine.narrowFlopsPerSecond);
      json.attribute("command_latency", machine.commandLatency);
      json.attribute("memory_bytes", machine.memoryBytes);
      json.attribute("ranks_per_host", machine.ranksPerHost);
      json.attribute("host_latency", machine.hostLink.latency);
      json.attribute("host_bytes_per_second", machine.hostLink.bytesPerSecond);
    });
    json.attributeArray("programs", [&] {
      for (const ProgramReport &program : report.programs)
        json.object([&] {
          json.attribute("name", ProgramOp(program.op).getSymName());
          json.attribute("seconds", program.seconds);
          json.attributeArray("stages", [&] {
            for (const StageReport &stage : program.stages)
              json.object([&] {
                json.attribute("stage", stage.on);
                writeStage(json, stage, report.mesh);
              });
          });
          json.attributeArray("transfers", [&] {
            for (const TransferReport &transfer : program.transfers)
              json.object([&] {
                TransferOp op = transfer.op;
                json.attribute("from", op.getFrom());
                json.attribute("to", op.getTo());
                json.attribute("slots", op.getSlots());
                json.attribute("bytes", transfer.bytes);
              });
          });
        });
    });
  });
  return text;
}

std::string plan::explainJSON(ModuleOp module) {
  return toJSON(module,
                [](OStream &json, const StageReport &stage, const Mesh &mesh) {
                  json.attributeArray("layers", [&] {
                    for (const Layer &layer : stage.layers)
                      writeLayer(json, layer, mesh);
                  });
                  json.attributeArray("collectives", [&] {
                    for (const Collective &collective : stage.collectives)
                      writeCollective(json, collective, mesh);
                  });
                });
}

std::string plan::reportJSON(ModuleOp module,
                             const cost::Predictions &predictions) {
  auto writeStage = [](OStream &json, const StageReport &stage,
                       const Mesh &mesh) {
    const cost::StageCost &cost = stage.cost;
    json.attribute("ops", stage.numOps);
    json.attribute("seconds", stage.seconds);
    json.attribute("send_seconds", stage.sendSeconds);
    json.attributeObject("weight_bytes", [&] {
      json.attribute("whole", stage.wholeWeightBytes);
      json.attribute("rank", stage.rankWeightBytes);
    });
    json.attributeObject("memory_bytes", [&] {
      if (stage.memory) {
        const cost::RankMemory &planned = *stage.memory;
        json.attribute("weights", planned.weights);
        json.attribute("gradients", planned.gradients);
        json.attribute("optimizer", planned.optimizer);
        json.attribute("carried", planned.carried);
        json.attribute("activations", planned.activations);
        json.attribute("constants", planned.constants);
      }
      json.attribute("state", cost.stateBytes);
      json.attribute("arena", stage.memory ? stage.memory->gradients +
                                                 stage.memory->activations
                                           : cost.arenaBytes);
      json.attribute("slots", cost.slotBytes);
      json.attribute("ports", cost.portBytes);
      json.attribute("peak", stage.peakBytes());
    });
    struct Flops {
      double whole = 0, rank = 0;
    };
    std::map<std::string, Flops> flops;
    for (const Layer &layer : stage.layers) {
      flops[layer.kind].whole += layer.wholeFlops;
      flops[layer.kind].rank += layer.rankFlops;
    }
    json.attributeObject("flops", [&] {
      for (const auto &[kind, sum] : flops)
        if (sum.whole > 0)
          json.attributeObject(kind, [&, &sum = sum] {
            json.attribute("whole", sum.whole);
            json.attribute("rank", sum.rank);
          });
    });
    struct Traffic {
      int64_t count = 0, bytes = 0;
    };
    std::map<std::pair<std::string, std::string>, Traffic> traffic;
    for (const Collective &collective : stage.collectives) {
      Traffic &entry =
          traffic[{toString(collective.kind), axesText(collective.axes, mesh)}];
      ++entry.count;
      entry.bytes += collective.bytes;
    }
    json.attributeArray("collectives", [&] {
      for (const auto &[what, sum] : traffic)
        json.object([&, &what = what, &sum = sum] {
          json.attribute("kind", what.first);
          json.attribute("axes", what.second);
          json.attribute("count", sum.count);
          json.attribute("bytes", sum.bytes);
        });
    });
  };
  return toJSON(module, writeStage, predictions);
}
