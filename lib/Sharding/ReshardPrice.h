//===- ReshardPrice.h - What steps and paths cost ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_SHARDING_RESHARDPRICE_H
#define AX_LIB_SHARDING_RESHARDPRICE_H

#include "LayoutTable.h"

#include <cmath>
#include <tuple>

namespace ax::sharding::detail {

/// What makes a path better: time, then fewer collectives, then fewer steps.
/// Times are whole picoseconds, so that sums in another order compare equal.
struct Price {
  int64_t picoseconds = 0;
  int collectives = 0;
  int steps = 0;

  bool operator<(const Price &o) const {
    return std::tie(picoseconds, collectives, steps) <
           std::tie(o.picoseconds, o.collectives, o.steps);
  }
  Price operator+(const Price &o) const {
    return {picoseconds + o.picoseconds, collectives + o.collectives,
            steps + o.steps};
  }
};

inline int64_t picosecondsOf(double seconds) {
  return static_cast<int64_t>(std::llround(seconds * 1e12));
}

/// The cost function, asked by numbers of axes. Over axes in time sums are
/// free, as they can be added up slice by slice, and all else is as good as
/// impossible, as no slice waits for the next ones.
class StepPrices {
public:
  StepPrices(LayoutTable &table, CostFn cost)
      : table(table), cost(std::move(cost)) {}

  /// `axes` is sorted; `payload` as payloadBytes() says.
  double seconds(StepKind kind, AxesId axes, int64_t payload);
  Price price(StepKind kind, AxesId axes, int64_t payload);
  /// What reducing over these axes costs at least, whichever way it is done:
  /// over axes in space a reduce-scatter, over others nothing.
  Price leastToReduce(AxesId axes, int64_t payload);

private:
  struct Group {
    SubAxes inSpace;
    bool someInTime;
  };
  const Group &groupOf(AxesId axes);

  LayoutTable &table;
  CostFn cost;
  std::unordered_map<AxesId, Group> groups;
};

} // namespace ax::sharding::detail

#endif // AX_LIB_SHARDING_RESHARDPRICE_H
