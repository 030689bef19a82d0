//===- ShardAnalysis.cpp - What the steps of Shard share ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ShardAnalysis.h"

#include "ax/Cost/OpCost.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace ax;

static sharding::PropagateOptions pricesOf(const sharding::Mesh &mesh,
                                           const cost::Machine &machine) {
  sharding::PropagateOptions options;
  options.cost = cost::collectiveCost(mesh, machine);
  options.flopsPerSecond = machine.flopsPerSecond;
  options.bytesPerSecond = machine.bytesPerSecond;
  return options;
}

ShardAnalysis::ShardAnalysis(Operation *plan)
    : mesh(cast<PlanOp>(plan).getMesh()),
      propagator(mesh, pricesOf(mesh, cost::machineOf(plan))) {}

const ShardGraph *ShardAnalysis::graphOf(ProgramOp program) {
  auto at = graphs.find(program);
  if (at == graphs.end()) {
    FailureOr<ShardGraph> graph = ShardGraph::build(program);
    if (failed(graph))
      return nullptr;
    at = graphs.try_emplace(program, std::move(*graph)).first;
  }
  return &at->second;
}

bool ax::sharesStates(ProgramOp program) {
  auto plan = program->getParentOfType<PlanOp>();
  llvm::DenseSet<Attribute> known;
  for (auto state : plan.getBody().getOps<StateOp>())
    if (state.getTensorType().getEncoding())
      known.insert(state.getSymNameAttr());
  for (auto other : plan.getBody().getOps<ProgramOp>()) {
    if (other == program)
      break;
    for (auto load : other.getBody().getOps<LoadOp>())
      known.insert(load.getStateAttr().getAttr());
  }
  return llvm::any_of(program.getBody().getOps<LoadOp>(), [&](LoadOp load) {
    return known.contains(load.getStateAttr().getAttr());
  });
}

LogicalResult Complaints::add(Operation *op, StringRef text) {
  StringRef name = getNodeName(op);
  if (!told.insert({name.str(), text.str()}).second)
    return success();
  auto say = [&](InFlightDiagnostic diagnostic) {
    if (!name.empty())
      diagnostic << "'" << name << "': ";
    diagnostic << text;
    return diagnostic;
  };
  if (strict)
    return say(op->emitError()) << "; --strict makes it an error";
  say(op->emitWarning());
  return success();
}
