//===- ReshardSearch.h - Shortest paths over layouts ------------*- C++ -*-===//
#ifndef AX_LIB_SHARDING_RESHARDSEARCH_H
#define AX_LIB_SHARDING_RESHARDSEARCH_H

#include "ax/Sharding/Reshard.h"

#include <cmath>
#include <tuple>

namespace ax::sharding::detail {

/// What makes a path better: time, then fewer collectives, then fewer steps.
/// Picoseconds, so that sums in another order compare equal.
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

using Pricer = std::function<Price(const Step &step, const Layout &from)>;

/// The cheapest path not dearer than `bound`; with very many layouts the
/// cheapest of those seen. Nothing when there is none. Dimensions and partial
/// axes that agree at both ends are left alone.
std::optional<std::vector<Step>> findPath(const Layout &from, const Layout &to,
                                          const Pricer &priceOf, Price bound);

} // namespace ax::sharding::detail

#endif // AX_LIB_SHARDING_RESHARDSEARCH_H
