//===- Propagate.cpp - Layouts from pins ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One program after another, each as a graph of its own: the engine
// (lib/Sharding/Propagate.cpp) decides, and what it decides is written into
// attributes. Programs share states, which are stored once: the first program
// that reads a state says how, unless the state has a layout already, and the
// others are pinned to that.
//
//===----------------------------------------------------------------------===//
#include "PinLists.h"
#include "ShardAnalysis.h"
#include "Shardings.h"
#include "ax/Dialect/Pins.h"
#include "ax/Passes/Passes.h"
#include "ax/Sharding/Digits.h"

#include "llvm/ADT/StringMap.h"

namespace ax {
#define GEN_PASS_DEF_PROPAGATE
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;
using namespace ax::sharding;

/// Returns how the factor that `pin` of operation `op` is of is split. A layout
/// knows dimensions only, so the one that the factor is a part of is divided.
static DimLayout splitOf(FactorPinAttr pin, int op, const ShardGraph &graph,
                         const Shardings &found) {
  const Rule &rule = graph.rule(op);
  const Shardings::Op &sharding = found.ops[op];
  bool ofResult = pin.getOfResult();
  const auto &numbers = ofResult ? sharding.results : sharding.operands;
  const auto &maps = ofResult ? rule.results : rule.operands;
  std::vector<int64_t> sizes;
  for (int factor : maps[pin.getTensor()][pin.getDim()])
    sizes.push_back(rule.factors[factor].size);
  const Layout &layout = found.layouts[numbers[pin.getTensor()]];
  auto parts = divide(layout.dims[pin.getDim()], sizes);
  assert(parts && "what an op is given does not fall on its factors");
  return (*parts)[pin.getPart()];
}

/// Tells what was asked for and is split into fewer parts. Where users pinned a
/// factor of the operation themselves, they are not told what follows from it.
static LogicalResult tellUnsplit(const ShardGraph &graph,
                                 const Shardings &found, const Mesh &mesh,
                                 Complaints &complaints) {
  for (auto [i, op] : llvm::enumerate(graph.ops)) {
    auto list = cast_or_null<ArrayAttr>(op->getDiscardableAttr(kPins));
    if (!list)
      continue;
    SmallVector<FactorPinAttr> pins;
    for (Attribute pin : list)
      if (auto ofFactor = dyn_cast<FactorPinAttr>(pin))
        pins.push_back(ofFactor);
    if (llvm::any_of(pins, [](FactorPinAttr pin) { return pin.getUser(); }))
      continue;
    for (FactorPinAttr pin : pins) {
      if (pin.getAsks().empty())
        continue;
      int64_t size = graph.rule(i).factors[factorOf(pin, graph.rule(i))].size;
      Layout asked = pin.getSplit().resolve({size}, mesh);
      int64_t ways = numParts(asked.dims.front().axes()),
              parts = numParts(splitOf(pin, i, graph, found).axes());
      if (parts < ways &&
          failed(complaints.add(
              op, "its " + pin.getAsks().str() + " are not split " +
                      std::to_string(ways) +
                      " ways, because what is beside them is not: " +
                      insteadOf(parts))))
        return failure();
    }
  }
  return success();
}

namespace {
struct Propagate : ax::impl::PropagateBase<Propagate> {
  using PropagateBase::PropagateBase;

  void runOnOperation() final {
    auto &shared = getAnalysis<ShardAnalysis>();
    for (auto state : getOperation().getBody().getOps<StateOp>())
      if (RankedTensorType type = state.getTensorType(); type.getEncoding())
        stored[state.getSymName()] = getLayout(type, shared.getMesh());
    for (ProgramOp program : getOperation().getBody().getOps<ProgramOp>()) {
      const ShardGraph *graph = shared.graphOf(program);
      if (!graph || failed(propagate(program, *graph, shared)))
        return signalPassFailure();
    }
    stored.clear();
    markAllAnalysesPreserved();
  }

  LogicalResult propagate(ProgramOp program, const ShardGraph &graph,
                          ShardAnalysis &shared) {
    const Mesh &mesh = shared.getMesh();
    pinStates(graph, mesh);
    Decided decided =
        shared.getPropagator().decide(graph.graph, readPins(graph, mesh));
    for (auto [tensor, value] : llvm::enumerate(graph.values))
      if (auto load = value.getDefiningOp<LoadOp>())
        stored.try_emplace(load.getState(),
                           withoutTime(decided.shardings.tensor(tensor), mesh));
    writeShardings(graph, decided.shardings, mesh);
    if (sharesStates(program))
      return success();
    Complaints complaints(strict);
    if (failed(tellUnsplit(graph, decided.shardings, mesh, complaints)))
      return failure();
    for (const std::string &warning : decided.warnings)
      if (failed(complaints.add(program, warning)))
        return failure();
    return success();
  }

  /// Pins each state as the program before this one has it. The pins do not
  /// spread: where an operation wants it otherwise, it is resharded there.
  void pinStates(const ShardGraph &graph, const Mesh &mesh) {
    Pins pins;
    for (auto [tensor, value] : llvm::enumerate(graph.values)) {
      auto load = value.getDefiningOp<LoadOp>();
      if (!load)
        continue;
      auto at = stored.find(load.getState());
      if (at == stored.end())
        continue;
      for (auto [dim, split] : llvm::enumerate(at->second.dims))
        pins.tensors.push_back({static_cast<int>(tensor), static_cast<int>(dim),
                                split, PinLevel::Recipe, "it is stored so",
                                /*open=*/false, /*spreads=*/false});
    }
    addPins(graph, pins, mesh);
  }

  /// The layout of each state, as given or as programs before this one have it.
  llvm::StringMap<Layout> stored;
};
} // namespace
