//===- Resharder.cpp - Planned reshardings, remembered --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ReshardPlans.h"

#include "ReshardSearch.h"

#include "ax/Sharding/Digits.h"

#include <algorithm>
#include <cassert>

namespace ax::sharding {

namespace {

/// Reduces and gathers all that differs, then slices: what always works, and
/// the bound from which a search begins. From `[{a}, {}], partial sum {b}` to
/// `[{}, {a}]` it is an all-reduce over b, an all-gather over a, and a slice.
std::vector<Step> gatherThenSlice(const Layout &from, const Layout &to) {
  std::vector<Step> steps;
  Layout now = from;
  auto go = [&](const Layout &next) {
    Layout result = canonicalize(next);
    if (result == now)
      return;
    auto step = identifyStep(now, result);
    assert(step && "not one step");
    steps.push_back(*step);
    now = result;
  };
  bool sameKind = from.partialKind == to.partialKind;
  Layout next = now;
  next.partial = sameKind ? withoutAxes(from.partial,
                                        withoutAxes(from.partial, to.partial))
                          : SubAxes();
  go(next);
  for (size_t d = 0; d < from.dims.size(); ++d) {
    if (from.dims[d] == to.dims[d])
      continue;
    next = now;
    next.dims[d] = DimLayout::whole(from.dims[d].size());
    go(next);
  }
  next = now;
  next.dims = to.dims;
  go(next);
  go(to);
  return steps;
}

/// Joins neighbouring slices of several dimensions: the search makes one for
/// each, and a plan has one `all_slice` for them, as nothing is sent.
void joinSlices(std::vector<Step> &steps, const Layout &from) {
  for (size_t i = 1; i < steps.size();) {
    const Layout &before = i >= 2 ? steps[i - 2].result : from;
    auto joined = identifyStep(before, steps[i].result);
    bool both = steps[i - 1].kind == StepKind::AllSlice &&
                steps[i].kind == StepKind::AllSlice;
    if (!both || !joined || joined->kind != StepKind::AllSlice) {
      ++i;
      continue;
    }
    steps[i - 1] = *joined;
    steps.erase(steps.begin() + i);
  }
}

} // namespace

int ReshardPlan::numCollectives() const {
  int count = 0;
  for (const Step &step : steps)
    count += communicates(step.kind);
  return count;
}

namespace detail {

/// In seconds, for those who add them to an op's own; a search counts in whole
/// picoseconds.
double ReshardPlans::secondsOf(const Step &step, const Layout &from,
                               ElementBytes elementBytes) {
  return prices.seconds(
      step.kind, table.add(step.axes),
      payloadBytes(step.kind, from, step.result, elementBytes));
}

Price ReshardPlans::priceOf(const std::vector<Step> &steps, const Layout &from,
                            ElementBytes elementBytes) {
  Price price;
  const Layout *at = &from;
  for (const Step &step : steps) {
    price = price + prices.price(step.kind, table.add(step.axes),
                                 payloadBytes(step.kind, *at, step.result,
                                              elementBytes));
    at = &step.result;
  }
  return price;
}

/// Where one collective does, it is taken, even if the cost function prices a
/// cascade over its axes lower: how a collective over two axes is done inside
/// is the communicator's choice, and readers count collectives. A permute is no
/// such step, as it sends whole blocks: an all-gather and a slice may send
/// less.
ReshardPlan ReshardPlans::make(LayoutId fromId, LayoutId toId,
                               ElementBytes elementBytes) {
  const Layout &from = table[fromId].value, &to = table[toId].value;
  ReshardPlan plan;
  std::optional<Step> single = identifyStep(from, to);
  if (single && single->kind != StepKind::CollectivePermute) {
    plan.steps = {*single};
  } else {
    plan.steps = gatherThenSlice(from, to);
    Price bound = priceOf(plan.steps, from, elementBytes);
    if (auto steps =
            findPath(fromId, toId, elementBytes, {table, moves, prices}, bound))
      plan.steps = *steps;
    joinSlices(plan.steps, from);
  }
  const Layout *at = &from;
  for (const Step &step : plan.steps) {
    plan.seconds += secondsOf(step, *at, elementBytes);
    at = &step.result;
  }
  return plan;
}

const PlannedReshard &ReshardPlans::plan(LayoutId from, LayoutId to,
                                         ElementBytes elementBytes) {
  // What is cheapest depends on how wide elements are, and addends: latencies
  // count more for fewer bytes, and a reduction makes wide sums narrow again.
  auto width =
      std::find_if(widths.begin(), widths.end(), [&](const OfWidth &w) {
        return w.bytes.whole == elementBytes.whole &&
               w.bytes.addend == elementBytes.addend;
      });
  if (width == widths.end())
    width = widths.insert(width, {elementBytes, {}});
  return width->plans.get(from, to, [&] {
    PlannedReshard planned;
    if (from != to)
      planned.plan = make(from, to, elementBytes);
    const ReshardPlan &plan = planned.plan;
    planned.price = {picosecondsOf(plan.seconds), plan.numCollectives(),
                     static_cast<int>(plan.steps.size())};
    return planned;
  });
}

} // namespace detail

Resharder::Resharder(const Mesh &mesh, CostFn cost)
    : plans(std::make_unique<detail::ReshardPlans>(mesh, std::move(cost))) {}

Resharder::~Resharder() = default;

const ReshardPlan &Resharder::plan(const Layout &from, const Layout &to,
                                   ElementBytes elementBytes) {
  detail::LayoutTable &table = plans->table;
  return plans->plan(table.add(from), table.add(to), elementBytes).plan;
}

} // namespace ax::sharding
