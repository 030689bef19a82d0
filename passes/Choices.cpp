//===- Choices.cpp - What flags choose of a model -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Passes/Choices.h"

#include "Shard/UserPins.h"
#include "Train/Optimizer/ParameterGroup.h"
#include "ax/Support/Error.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Support/GlobPattern.h"

using namespace mlir;
using namespace ax;

static std::vector<std::string> statesNamed(ArrayRef<WeightChoice> choices,
                                            const std::string &pattern) {
  std::vector<std::string> names;
  // Who has chosen has seen that it is a glob.
  llvm::GlobPattern glob = llvm::cantFail(llvm::GlobPattern::create(pattern));
  for (const WeightChoice &choice : choices)
    if (StringRef name = StateOp(choice.state).getSymName(); glob.match(name))
      names.push_back(name.str());
  return names;
}

/// The cut comes after the last operation of that name.
static std::vector<std::string> nodesNamed(ProgramOp program, StringRef name) {
  llvm::SetVector<StringRef> nodes;
  for (Operation &op : program.getBody().front())
    if (llvm::is_contained(getNodeNames(&op), name))
      nodes.insert(getNodeName(&op));
  return {nodes.begin(), nodes.end()};
}

static llvm::Error matchTraining(PlanOp plan, const Training &training,
                                 std::vector<PatternMatch> &matches) {
  auto choices = chooseTrainable(plan, training.trainable, training.frozen);
  if (!choices)
    return choices.takeError();
  for (const std::string &pattern : training.trainable)
    matches.push_back({"--trainable", pattern, statesNamed(*choices, pattern)});
  for (const std::string &pattern : training.frozen)
    matches.push_back({"--frozen", pattern, statesNamed(*choices, pattern)});
  for (const ParameterGroup &group : training.groups) {
    auto names = findGroup(plan, group);
    if (!names)
      return names.takeError();
    matches.push_back({"--param-group", group.toText(), std::move(*names)});
  }
  SmallVector<StateOp> trained;
  for (const WeightChoice &choice : *choices)
    if (choice.isTrained)
      trained.push_back(choice.state);
  for (const FrozenRows &rows : training.frozenRows) {
    auto states = findFrozen(trained, rows);
    if (!states)
      return states.takeError();
    PatternMatch &match =
        matches.emplace_back(PatternMatch{"--frozen-rows", rows.toText(), {}});
    for (StateOp state : *states)
      match.names.push_back(state.getSymName().str());
  }
  return llvm::Error::success();
}

llvm::Expected<std::vector<PatternMatch>>
ax::matchPatterns(PlanOp plan, const Strategy &strategy) {
  std::vector<PatternMatch> matches;
  ProgramOp program = *plan.getBody().getOps<ProgramOp>().begin();
  if (!strategy.shard.empty()) {
    FailureOr<ShardGraph> graph = ShardGraph::build(program);
    if (failed(graph))
      return makeError(ExitCode::Internal, "it has no sharding rule");
    auto mesh = strategy.mesh();
    if (!mesh)
      return mesh.takeError();
    // Whether the layouts fit, too.
    sharding::Pins pins;
    auto named = addUserPins(*graph, program, strategy.shard, *mesh, pins);
    if (!named)
      return named.takeError();
    for (const ShardPin &pin : strategy.shard) {
      auto names = namesOfPin(*graph, program, pin);
      if (!names)
        return names.takeError();
      matches.push_back(
          {"--shard", pin.pattern + "=" + pin.layout, std::move(*names)});
    }
  }
  for (const std::string &cut : strategy.cuts)
    matches.push_back({"--cut", cut, nodesNamed(program, cut)});
  if (strategy.training)
    if (llvm::Error error = matchTraining(plan, *strategy.training, matches))
      return error;
  return matches;
}
