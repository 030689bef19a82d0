//===- Resharder.cpp - Planned reshardings, remembered --------------------===//

#include "ReshardSearch.h"

#include "ax/Sharding/Digits.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <unordered_map>

namespace ax::sharding {

namespace {

/// Reduces and gathers all that differs, then slices.
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

/// Joins neighbouring slices of several dimensions.
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

struct Resharder::Impl {
  Mesh mesh;
  CostFn cost;
  std::unordered_map<std::string, ReshardPlan> known;
  /// Seconds; a few of them can be added.
  static constexpr double impossible = 1e5;

  double secondsOf(const Step &step, const Layout &from,
                   ElementBytes elementBytes) const {
    if (!communicates(step.kind))
      return 0;
    SubAxes inSpace;
    for (const SubAxis &axis : step.axes)
      if (!mesh.isInTime(axis))
        inSpace.push_back(axis);
    // Sums can be added up slice by slice; nothing else can wait for others.
    if (inSpace.size() < step.axes.size() && step.kind != StepKind::AllReduce)
      return impossible;
    if (inSpace.empty())
      return 0;
    return cost(step.kind, inSpace,
                payloadBytes(step.kind, from, step.result, elementBytes));
  }

  detail::Price priceOf(const Step &step, const Layout &from,
                        ElementBytes elementBytes) const {
    double seconds = secondsOf(step, from, elementBytes);
    return {static_cast<int64_t>(
                std::llround(std::min(seconds, impossible) * 1e12)),
            communicates(step.kind) ? 1 : 0, 1};
  }

  ReshardPlan make(const Layout &from, const Layout &to,
                   ElementBytes elementBytes) const {
    ReshardPlan plan;
    std::optional<Step> single = identifyStep(from, to);
    if (single && single->kind != StepKind::CollectivePermute) {
      plan.steps = {*single};
    } else {
      plan.steps = gatherThenSlice(from, to);
      detail::Price bound;
      const Layout *at = &from;
      for (const Step &step : plan.steps) {
        bound = bound + priceOf(step, *at, elementBytes);
        at = &step.result;
      }
      auto pricer = [&](const Step &step, const Layout &before) {
        return priceOf(step, before, elementBytes);
      };
      if (auto steps = detail::findPath(from, to, pricer, bound))
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
};

Resharder::Resharder(const Mesh &mesh, CostFn cost)
    : impl(std::make_unique<Impl>(Impl{mesh, std::move(cost), {}})) {}

Resharder::~Resharder() = default;

const ReshardPlan &Resharder::plan(const Layout &from, const Layout &to,
                                   ElementBytes elementBytes) {
  std::string key = detail::keyOf(from) + '>' + detail::keyOf(to) + '*' +
                    std::to_string(elementBytes.whole) + ',' +
                    std::to_string(elementBytes.addend);
  auto at = impl->known.find(key);
  if (at == impl->known.end()) {
    ReshardPlan plan;
    if (from != to)
      plan = impl->make(from, to, elementBytes);
    at = impl->known.emplace(std::move(key), std::move(plan)).first;
  }
  return at->second;
}

} // namespace ax::sharding
