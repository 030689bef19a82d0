//===- PropagateState.cpp - What propagation works on ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pins are applied before anything spreads, users' before the recipe's. An
// example: the recipe splits n of a Linear over col, and a user splits it over
// row. The user's pin is there first, and the recipe's, which finds a stronger
// one in its place, is dropped without a word. If the recipe splits k of that
// Linear over row besides, row would number parts of two factors: that pin
// cannot be followed, which is told, and k stays whole until a neighbour says
// something else.
//
//===----------------------------------------------------------------------===//

#include "PropagateState.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <queue>

namespace ax::sharding::detail {

State::State(const Graph &graph, const PropagateOptions &options,
             ReshardPlans &plans, RuleTable &ruleTable)
    : graph(graph), options(options), plans(plans), table(plans.table),
      mesh(table.getMesh()) {
  size_t numTensors = graph.tensors.size(), numOps = graph.ops.size();
  producers.resize(numTensors);
  uses.resize(numTensors);
  for (size_t i = 0; i < numOps; ++i) {
    const GraphOp &op = graph.ops[i];
    assert(op.operands.size() == op.rule.operands.size() &&
           op.results.size() == op.rule.results.size() && !op.results.empty());
    for (size_t r = 0; r < op.results.size(); ++r)
      producers[op.results[r]] = {static_cast<int>(i), static_cast<int>(r)};
    for (size_t o = 0; o < op.operands.size(); ++o)
      uses[op.operands[o]].push_back(
          {static_cast<int>(i), static_cast<int>(o)});
  }
  auto numberOf = [&](int op) { return graph.ops[op].results[0]; };
  for (size_t t = 0; t < numTensors; ++t) {
    std::sort(uses[t].begin(), uses[t].end(), [&](const Use &a, const Use &b) {
      return std::pair(numberOf(a.op), a.operand) <
             std::pair(numberOf(b.op), b.operand);
    });
    if (graph.tensors[t].isOutput)
      uses[t].push_back({-1, 0});
  }

  // Kahn's algorithm. Among ops that are ready the one whose result has the
  // lowest number goes first: results are numbered as the program has them, so
  // the order is the program's own, whatever the order of Graph::ops.
  std::vector<int> waiting(numOps);
  using Ready = std::pair<int, int>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (size_t i = 0; i < numOps; ++i) {
    for (int operand : graph.ops[i].operands)
      waiting[i] += producers[operand].op >= 0;
    if (waiting[i] == 0)
      ready.push({numberOf(static_cast<int>(i)), static_cast<int>(i)});
  }
  while (!ready.empty()) {
    int op = ready.top().second;
    ready.pop();
    order.push_back(op);
    for (int result : graph.ops[op].results)
      for (const Use &use : uses[result])
        if (use.op >= 0 && --waiting[use.op] == 0)
          ready.push({numberOf(use.op), use.op});
  }
  assert(order.size() == numOps && "the graph has a cycle");

  places.resize(numOps);
  for (size_t i = 0; i < numOps; ++i)
    places[order[i]] = static_cast<int>(i);

  sources.resize(numTensors);
  passing.resize(numOps);
  layouts.resize(numOps);
  for (const GraphOp &op : graph.ops) {
    rules.push_back(&ruleTable.add(op.rule));
    factors.emplace_back().reserve(op.rule.factors.size());
    for (const RuleFactor &factor : op.rule.factors)
      factors.back().push_back({table.whole(factor.size)});
  }
  for (const GraphTensor &tensor : graph.tensors) {
    dims.emplace_back().reserve(tensor.shape.size());
    for (int64_t size : tensor.shape)
      dims.back().push_back({table.whole(size)});
  }
}

namespace {

std::string factorName(const GraphOp &op, size_t factor) {
  if (factor < op.factorNames.size() && !op.factorNames[factor].empty())
    return op.factorNames[factor];
  return "factor " + std::to_string(factor);
}

/// Puts a pin where no stronger one is; false, and no change, where one is.
bool place(Split &split, DimId dim, PinLevel level, int cause, bool open) {
  if (split.pinned && split.level > level)
    return false;
  split = {dim};
  split.level = level;
  split.cause = cause;
  split.pinned = true;
  split.closed = !open;
  return true;
}

} // namespace

/// The pins of one level by what they pin: the last first, which holds unless
/// it cannot. Places are in the order in which their last pins were given.
template <typename Pin, typename PlaceOf>
static std::vector<std::vector<const Pin *>>
pinsByPlace(const std::vector<Pin> &pins, PinLevel level, PlaceOf placeOf) {
  std::map<std::pair<int, int>, size_t> places;
  std::vector<std::vector<const Pin *>> found;
  for (size_t i = pins.size(); i-- > 0;) {
    if (pins[i].level != level)
      continue;
    auto [at, isNew] = places.try_emplace(placeOf(pins[i]), found.size());
    if (isNew)
      found.emplace_back();
    found[at->second].push_back(&pins[i]);
  }
  std::reverse(found.begin(), found.end());
  return found;
}

/// A pin that splits over axes which another factor of the op has, or in a way
/// that the op cannot be split, is not followed but told. Reserved axes
/// (`anyPlace`) take part in this, as nobody else may have them, but split
/// nothing yet: they become `ifUntold`, and the factor is whole until a
/// neighbour, or placeUntold(), says where they go.
bool State::applyPin(const FactorPin &pin) {
  causes.push_back(pin.cause);
  std::vector<Split> changed = factors[pin.op];
  // Over axes of size 1 nothing is split, and there is no place to look for.
  const DimLayout asked = canonicalize(pin.split);
  if (!place(changed[pin.factor], table.add(asked), pin.level,
             static_cast<int>(causes.size()) - 1, pin.open))
    return true;
  std::optional<std::string> fault;
  for (const SubAxis &axis : pin.split.axes())
    if (table.overlap(table.add(SubAxes{axis}),
                      axesOfOthers(pin.op, pin.factor)))
      fault = "axis '" + toString(axis, mesh) + "' is used twice";
  // Of reserved axes the place need not be legal.
  if (!fault && !(pin.anyPlace && pin.elseWhole) && !canHave(pin.op, changed))
    fault = findFault(graph.ops[pin.op].rule,
                      rules[pin.op]->assignment(dimsOf(changed), {}), mesh);
  if (fault) {
    warnings.push_back(graph.ops[pin.op].name + ": " +
                       factorName(graph.ops[pin.op], pin.factor) +
                       " is not split as " + pin.cause + " asks: " + *fault);
    return false;
  }
  if (pin.anyPlace && asked.isSplit()) {
    Split &split = changed[pin.factor];
    split.ifUntold = split.dim;
    split.dim = table.whole(split.dim);
    split.closed = false;
    split.elseWhole = pin.elseWhole;
  }
  factors[pin.op] = std::move(changed);
  return true;
}

/// The same for a dimension of a tensor. A state's pins do not spread: how a
/// weight is stored (ZeRO, depth) says nothing about how it is used.
bool State::applyPin(const TensorPin &pin) {
  causes.push_back(pin.cause);
  std::vector<Split> changed = dims[pin.tensor];
  if (!place(changed[pin.dim], table.add(canonicalize(pin.split)), pin.level,
             static_cast<int>(causes.size()) - 1, pin.open))
    return true;
  const GraphTensor &tensor = graph.tensors[pin.tensor];
  changed[pin.dim].spreads = pin.spreads && tensor.role != TensorRole::State;
  Layout layout;
  for (const Split &split : changed)
    layout.dims.push_back(table[split.dim].value);
  if (auto fault = findFault(layout, tensor.shape, mesh)) {
    warnings.push_back(tensor.name + ": dimension " + std::to_string(pin.dim) +
                       " is not split as " + pin.cause + " asks: " + *fault);
    return false;
  }
  dims[pin.tensor] = std::move(changed);
  return true;
}

/// Applies the first pin of each place that can be followed.
template <typename Places>
static void applyFirst(State &state, const Places &places) {
  for (const auto &ofOnePlace : places)
    for (const auto *pin : ofOnePlace)
      if (state.applyPin(*pin))
        break;
}

void State::applyTensorPins(const Pins &pins, PinLevel level) {
  applyFirst(*this, pinsByPlace(pins.tensors, level, [](const TensorPin &pin) {
    return std::pair(pin.tensor, pin.dim);
  }));
}

void State::applyPins(const Pins &pins) {
  for (const FactorPin &pin : pins.factors)
    hasPins[static_cast<size_t>(pin.level)] = true;
  for (const TensorPin &pin : pins.tensors)
    hasPins[static_cast<size_t>(pin.level)] = true;
  // Stronger pins first: a weaker one that does not fit beside them gives way.
  // Of those for one place that are as strong, the last one that can be
  // followed holds, so that a user's later --shard overrides an earlier one.
  for (PinLevel level : pinLevels) {
    applyFirst(*this,
               pinsByPlace(pins.factors, level, [](const FactorPin &pin) {
                 return std::pair(pin.op, pin.factor);
               }));
    applyTensorPins(pins, level);
  }
}

const std::vector<DimId> &State::dimsOf(const std::vector<Split> &factors) {
  scratch.clear();
  for (const Split &split : factors)
    scratch.push_back(split.dim);
  return scratch;
}

Assignment State::assignmentOf(int op) {
  return rules[op]->assignment(dimsOf(factors[op]), passing[op]);
}

/// One axis splits one factor of an op only, so these are not free for
/// `factor`.
AxesId State::axesOfOthers(int op, int factor) {
  AxesId axes = LayoutTable::noAxes;
  for (size_t f = 0; f < factors[op].size(); ++f)
    if (static_cast<int>(f) != factor) {
      const Split &split = factors[op][f];
      axes =
          table.concat(axes, table.axesOf(split.ifUntold.value_or(split.dim)));
    }
  return axes;
}

bool State::splitsOver(int op, AxesId axes) {
  for (const Split &split : factors[op])
    if (table.overlap(table.axesOf(split.dim), axes))
      return true;
  return false;
}

double State::totalSeconds() {
  double seconds = 0;
  for (size_t op = 0; op < graph.ops.size(); ++op)
    seconds += opSeconds(static_cast<int>(op));
  for (size_t t = 0; t < graph.tensors.size(); ++t)
    seconds += treeSeconds(*this, static_cast<int>(t));
  return seconds;
}

std::optional<ReduceKind> State::ownReduction(int op) const {
  const Rule &rule = graph.ops[op].rule;
  for (size_t f = 0; f < rule.factors.size(); ++f)
    if (rule.factors[f].kind == FactorKind::Reduction &&
        table.isSplit(factors[op][f].dim))
      return rule.factors[f].reduce;
  return std::nullopt;
}

/// What operands the op wants and what results it gives is the same for all ops
/// of one rule that have these factors and pass these sums: a look-up.
void State::updateLayouts(int op) {
  layouts[op] = &rules[op]->layouts(dimsOf(factors[op]), passing[op]);
}

bool State::canHave(int op, const std::vector<Split> &factors) {
  return rules[op]->isLegal(dimsOf(factors));
}

/// Some dimension is: what the producer makes is then delivered as pins say.
bool State::isPinned(int tensor) const {
  for (const Split &split : dims[tensor])
    if (split.pinned)
      return true;
  return false;
}

/// Dimensions that are not pinned keep what splits them but for axes of pinned
/// ones; a sum is reduced, as consumers of a pinned value find it whole.
///
/// Made as `[{data}, {col}], partial sum {row}` with dimension 0 pinned to
/// {col}, it is delivered as `[{col}, {}]`: what the pin says, the other
/// dimension without col, nothing partial. An open pin of {data} would leave
/// `[{data}, {col}]`, and let a producer split dimension 0 further.
LayoutId State::delivered(int tensor, LayoutId produced) {
  std::vector<DimId> layout = table[produced].dims;
  AxesId pinnedAxes = LayoutTable::noAxes;
  for (const Split &split : dims[tensor])
    if (split.pinned)
      pinnedAxes = table.concat(pinnedAxes, table.axesOf(split.dim));
  for (size_t d = 0; d < layout.size(); ++d) {
    const Split &split = dims[tensor][d];
    DimId &dim = layout[d];
    if (!split.closed) {
      AxesId others =
          table.without(pinnedAxes, split.pinned ? table.axesOf(split.dim)
                                                 : LayoutTable::noAxes);
      AxesId clash = table.common(table.axesOf(dim), others);
      if (clash != LayoutTable::noAxes) {
        std::optional<DimId> rest = table.unsplit(dim, clash);
        dim = rest ? *rest : table.whole(dim);
      }
    }
    // An open pin lets the producer split further.
    if (split.pinned && (split.closed || !table.refines(dim, split.dim)))
      dim = split.dim;
  }
  for (DimId &dim : layout)
    dim = table.compose({dim});
  return table.add(layout, LayoutTable::noAxes, ReduceKind::Sum);
}

/// FLOPs are shared by all ranks that split some factor of the op: over a split
/// that it lacks, ranks repeat each other's work. Bytes are what one rank reads
/// and writes. Axes in time share nothing, as their slices are done one after
/// the other.
double State::opSeconds(int op) const {
  const GraphOp &graphOp = graph.ops[op];
  double parts = 1;
  for (const Split &split : factors[op])
    parts *= table[split.dim].partsInSpace;
  double bytes = 0;
  for (size_t i = 0; i < graphOp.operands.size(); ++i)
    bytes += static_cast<double>(
        table.localBytes(layouts[op]->operands[i],
                         graph.tensors[graphOp.operands[i]].elementBytes));
  for (size_t i = 0; i < graphOp.results.size(); ++i)
    bytes += static_cast<double>(
        table.localBytes(layouts[op]->results[i],
                         graph.tensors[graphOp.results[i]].elementBytes));
  return graphOp.flops / parts / options.flopsPerSecond +
         bytes / options.bytesPerSecond;
}

} // namespace ax::sharding::detail
