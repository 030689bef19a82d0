//===- Propagate.cpp - From pins to assignments and reshardings -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Four parts, each in a file of its own, work on one State: pins spread until
// nobody learns anything new (Spread); ops that can pass partial sums on do
// (PartialSums); where neighbours still disagree at a cost, cheaper assignments
// are searched for (Refine), after which sums are decided anew; and what
// remains is resharded, for each tensor in one tree (ReshardTree).
//
// An example: two Linears with a Relu between, where the recipe pins n of the
// first and k of the second to {col}. Spread carries {col} from the first over
// the Relu, and finds that the second agrees. The second sums over k, so its
// result is a partial sum over col, and whoever cannot pass that on makes it
// whole: the reduction there is the only resharding. Were k of the second
// pinned to {row}, pins would hold against Refine, and the tree of the tensor
// between would lead from {col} to {row}.
//
// The order of the four is that of what each needs: what is partial follows
// from which factors are split, and what a change costs, from both. Refine
// changes splits, so PartialSums comes after it once more; where Refine has
// passed sums on, that is held against a search that does not. To decide and to
// reshard are two calls, because what is decided is written into the IR in
// between, where it can be read and edited.
//
//===----------------------------------------------------------------------===//

#include "ax/Sharding/Propagate.h"

#include "PropagateState.h"

#include <cassert>

namespace ax::sharding {

namespace {

/// Pins the factors that a dimension is made of, each by its share of `axes`,
/// major factor first. E.g. a dimension of 8 key/value heads times 4 queries of
/// each, by col = 16: the 8 take its major 8, and the 4 its minor 2. A single
/// factor that may be padded takes all of the axes, as 50257 words over 2
/// ranks.
std::vector<FactorPin> pinDim(const Graph &graph, int op,
                              const std::vector<int> &factors,
                              const SubAxes &axes, PinLevel level,
                              const std::string &cause) {
  const Rule &rule = graph.ops[op].rule;
  std::vector<int> splittable;
  std::vector<int64_t> sizes;
  for (int factor : factors) {
    if (rule.factors[factor].kind == FactorKind::Whole)
      continue;
    splittable.push_back(factor);
    sizes.push_back(rule.factors[factor].size);
  }
  std::vector<DimLayout> parts = splitParts(sizes, axes);
  if (factors.size() == 1 && splittable.size() == 1 &&
      rule.factors[factors[0]].mayPad)
    parts = {canonicalize(DimLayout::split(sizes[0], axes))};
  std::vector<FactorPin> pins;
  for (size_t i = 0; i < splittable.size(); ++i)
    if (parts[i].isSplit())
      pins.push_back({op, splittable[i], parts[i], level, cause, false});
  return pins;
}

} // namespace

std::vector<FactorPin> pinOperandDim(const Graph &graph, int op, int operand,
                                     int dim, const SubAxes &axes,
                                     PinLevel level, const std::string &cause) {
  return pinDim(graph, op, graph.ops[op].rule.operands[operand][dim], axes,
                level, cause);
}

std::vector<FactorPin> pinResultDim(const Graph &graph, int op, int result,
                                    int dim, const SubAxes &axes,
                                    PinLevel level, const std::string &cause) {
  return pinDim(graph, op, graph.ops[op].rule.results[result][dim], axes, level,
                cause);
}

/// What outlasts a graph: paths of reshardings and layouts that rules allow do
/// not depend on it, and are asked for again and again, by equal layers and by
/// the other programs of a plan.
struct Propagator::Impl {
  Impl(const Mesh &mesh, const PropagateOptions &options)
      : options(options), resharder(mesh, options.cost),
        rules(resharder.getPlans().table) {}

  PropagateOptions options;
  Resharder resharder;
  detail::RuleTable rules;
};

Propagator::Propagator(const Mesh &mesh, const PropagateOptions &options)
    : impl(std::make_unique<Impl>(mesh, options)) {}

Propagator::~Propagator() = default;

Resharder &Propagator::getResharder() { return impl->resharder; }

// Spread ends because splits only get finer, Refine because the sum of
// predicted seconds falls with every change that it keeps.
Decided Propagator::decide(const Graph &graph, const Pins &pins) {
  detail::State state(graph, impl->options, impl->resharder.getPlans(),
                      impl->rules);
  state.applyPins(pins);
  detail::spread(state);
  detail::passPartialSums(state);
  const detail::State::Assigned unrefined = state.getAssigned();
  Decided decided;
  auto search = [&](bool mayPassOn) {
    detail::Refined refined = detail::refine(state, mayPassOn);
    decided.numTries += refined.numTries;
    detail::passPartialSums(state);
    return refined.passesOn;
  };
  // What passes sums on is decided anew behind a search, which may have taken
  // them to be passed where that is not so in the end.
  if (search(/*mayPassOn=*/true)) {
    const detail::State::Assigned passedOn = state.getAssigned();
    double seconds = state.totalSeconds();
    state.setAssigned(unrefined);
    search(/*mayPassOn=*/false);
    if (seconds <= state.totalSeconds())
      state.setAssigned(passedOn);
  }
  decided.shardings = detail::shardingsOf(state);
  decided.warnings = std::move(state.warnings);
  return decided;
}

/// Lists the branches of all trees, by number of the tensor. A branch names the
/// one that it starts from by its place in its own tree, which is moved to
/// where that tree begins in the list.
static Resharding reshardsOf(detail::State &state) {
  Resharding result;
  for (size_t t = 0; t < state.graph.tensors.size(); ++t) {
    detail::Tree tree = detail::buildTree(state, static_cast<int>(t));
    int offset = static_cast<int>(result.reshards.size());
    for (detail::Branch &branch : tree.branches) {
      Reshard reshard;
      reshard.tensor = static_cast<int>(t);
      reshard.source = branch.source < 0 ? -1 : branch.source + offset;
      reshard.from = state.table[branch.from].value;
      reshard.to = state.table[branch.to].value;
      reshard.steps = branch.planned->plan.steps;
      reshard.seconds = branch.seconds();
      reshard.uses = std::move(branch.uses);
      reshard.cause = detail::causeOf(state, reshard);
      result.reshards.push_back(std::move(reshard));
    }
    result.seconds += tree.seconds;
  }
  return result;
}

Resharding Propagator::reshard(const Graph &graph, const Pins &pins,
                               const Shardings &shardings) {
  detail::State state(graph, impl->options, impl->resharder.getPlans(),
                      impl->rules);
  if (auto fault = detail::restore(state, pins, shardings))
    return {{}, 0, std::move(fault)};
  return reshardsOf(state);
}

Propagation Propagator::propagate(const Graph &graph, const Pins &pins) {
  Decided decided = decide(graph, pins);
  detail::State state(graph, impl->options, impl->resharder.getPlans(),
                      impl->rules);
  // By way of shardings, as passes do it, so that there is one way from what is
  // decided to what is resharded.
  [[maybe_unused]] auto fault = detail::restore(state, pins, decided.shardings);
  assert(!fault && "what was decided is no assignment");
  Propagation result;
  for (size_t op = 0; op < graph.ops.size(); ++op) {
    AssignedOp assigned;
    assigned.assignment = state.assignmentOf(static_cast<int>(op));
    for (const detail::Split &split : state.factors[op])
      assigned.causes.push_back(split.cause >= 0 ? state.causes[split.cause]
                                                 : std::string());
    result.ops.push_back(std::move(assigned));
  }
  for (size_t t = 0; t < graph.tensors.size(); ++t)
    result.tensors.push_back(decided.shardings.tensor(static_cast<int>(t)));
  Resharding resharding = reshardsOf(state);
  result.reshards = std::move(resharding.reshards);
  result.reshardSeconds = resharding.seconds;
  result.warnings = std::move(decided.warnings);
  result.numTries = decided.numTries;
  return result;
}

Propagation propagate(const Graph &graph, const Mesh &mesh, const Pins &pins,
                      const PropagateOptions &options) {
  return Propagator(mesh, options).propagate(graph, pins);
}

} // namespace ax::sharding
