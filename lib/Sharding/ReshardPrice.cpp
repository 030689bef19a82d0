//===- ReshardPrice.cpp - What steps and paths cost -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ReshardPrice.h"

#include <algorithm>

namespace ax::sharding::detail {

/// In seconds: more than anything possible, and small enough that a few of them
/// can be added in picoseconds.
static constexpr double impossible = 1e5;

const StepPrices::Group &StepPrices::groupOf(AxesId axes) {
  auto [at, isNew] = groups.try_emplace(axes);
  if (isNew) {
    for (const SubAxis &axis : table[axes])
      if (!table.getMesh().isInTime(axis))
        at->second.inSpace.push_back(axis);
    at->second.someInTime = at->second.inSpace.size() < table[axes].size();
  }
  return at->second;
}

/// An all-reduce over axes in time and in space costs what its part in space
/// does: slices of a batch are summed where they are, one after the other, and
/// only their sum is sent to other ranks, once. Nothing else can be over time,
/// as a slice would have to wait for the next ones.
double StepPrices::seconds(StepKind kind, AxesId axes, int64_t payload) {
  if (!communicates(kind))
    return 0;
  const Group &group = groupOf(axes);
  if (group.someInTime && kind != StepKind::AllReduce)
    return impossible;
  return group.inSpace.empty() ? 0 : cost(kind, group.inSpace, payload);
}

/// No step is dearer than `impossible`, whatever the cost function says: sums
/// of prices must not overflow, and infinities would make all paths equal.
Price StepPrices::price(StepKind kind, AxesId axes, int64_t payload) {
  return {picosecondsOf(std::min(seconds(kind, axes, payload), impossible)),
          communicates(kind) ? 1 : 0, 1};
}

/// An all-reduce is a reduce-scatter and more (a promise of the cost function),
/// and over axes in time any reduction is free.
Price StepPrices::leastToReduce(AxesId axes, int64_t payload) {
  const Group &group = groupOf(axes);
  double seconds = group.inSpace.empty()
                       ? 0
                       : cost(StepKind::ReduceScatter, group.inSpace, payload);
  return {picosecondsOf(std::min(seconds, impossible)), 1, 1};
}

} // namespace ax::sharding::detail
