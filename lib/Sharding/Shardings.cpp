//===- Shardings.cpp - What is decided, out of a state and into one -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PropagateState.h"

#include <unordered_map>

namespace ax::sharding::detail {

namespace {

/// Gives what comes the next number, and remembers it by its identity.
class Numbering {
public:
  template <typename Id, typename Add>
  int operator()(Id id, Add add) {
    auto at = static_cast<size_t>(id);
    if (at >= numbers.size())
      numbers.resize(at + 1, -1);
    if (numbers[at] < 0)
      numbers[at] = add();
    return numbers[at];
  }

private:
  std::vector<int> numbers;
};

} // namespace

Shardings shardingsOf(State &state) {
  Shardings result;
  Numbering layouts, axes, causes;
  std::unordered_map<std::string, int> causeNumbers;
  auto append = [](auto &list, const auto &value) {
    list.push_back(value);
    return static_cast<int>(list.size()) - 1;
  };
  auto layoutNumber = [&](LayoutId id) {
    return layouts(
        id, [&] { return append(result.layouts, state.table[id].value); });
  };
  // Many pins have one cause.
  auto causeNumber = [&](int cause) {
    return causes(cause, [&] {
      auto [at, isNew] = causeNumbers.try_emplace(
          state.causes[cause], static_cast<int>(result.causes.size()));
      return isNew ? append(result.causes, at->first) : at->second;
    });
  };
  for (size_t op = 0; op < state.graph.ops.size(); ++op) {
    Shardings::Op made;
    for (LayoutId id : state.layouts[op]->operands)
      made.operands.push_back(layoutNumber(id));
    for (LayoutId id : state.layouts[op]->results)
      made.results.push_back(layoutNumber(id));
    for (const Split &split : state.factors[op])
      if (state.table.isSplit(split.dim) && split.cause >= 0) {
        AxesId id = state.table.axesOf(split.dim);
        int number =
            axes(id, [&] { return append(result.axes, state.table[id]); });
        made.because.emplace_back(number, causeNumber(split.cause));
      }
    result.ops.push_back(std::move(made));
  }
  for (size_t t = 0; t < state.graph.tensors.size(); ++t) {
    const Use &producer = state.producers[t];
    result.tensors.push_back(layoutNumber(
        producer.op >= 0 ? state.given(producer)
                         : buildTree(state, static_cast<int>(t)).produced));
  }
  return result;
}

std::optional<std::pair<int, std::string>>
restore(State &state, const Pins &pins, const Shardings &shardings) {
  for (PinLevel level : pinLevels)
    state.applyTensorPins(pins, level);
  state.warnings.clear();
  std::vector<LayoutId> layouts;
  for (const Layout &layout : shardings.layouts)
    layouts.push_back(state.table.add(layout));
  std::vector<AxesId> axes;
  for (const SubAxes &list : shardings.axes)
    axes.push_back(state.table.add(list));
  int firstCause = static_cast<int>(state.causes.size());
  state.causes.insert(state.causes.end(), shardings.causes.begin(),
                      shardings.causes.end());
  OpLayouts wanted;
  for (size_t op = 0; op < shardings.ops.size(); ++op) {
    const Shardings::Op &given = shardings.ops[op];
    wanted.operands.clear();
    wanted.results.clear();
    for (int number : given.operands)
      wanted.operands.push_back(layouts[number]);
    for (int number : given.results)
      wanted.results.push_back(layouts[number]);
    const InferredOp &found = state.rules[op]->infer(wanted);
    if (!found.fault.empty())
      return std::pair(static_cast<int>(op), found.fault);
    for (size_t f = 0; f < found.factors.size(); ++f) {
      Split &split = state.factors[op][f];
      split.dim = found.factors[f];
      for (auto [list, cause] : given.because)
        if (state.table.overlap(state.table.axesOf(split.dim), axes[list]))
          split.cause = firstCause + cause;
    }
    state.passing[op] = found.passing;
    state.updateLayouts(static_cast<int>(op));
  }
  for (size_t t = 0; t < state.sources.size(); ++t)
    if (state.producers[t].op < 0)
      state.sources[t] = layouts[shardings.tensors[t]];
  return std::nullopt;
}

} // namespace ax::sharding::detail
