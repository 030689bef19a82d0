//===- ExchangeCost.cpp - What exchanges between ranks take ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A group that has several ranks on each of several hosts exchanges in two
// turns, as NCCL and MPI do: of an all-reduce each host's ranks scatter a sum
// among themselves, each rank goes with its part to the other hosts, and what
// comes back is gathered. Example: 8 ranks, 4 on each of 2 hosts, a payload P:
//
//   within a host   2 * 3/4 * P        by the way within
//   between hosts   2 * 1/2 * P / 4    by the way between
//
// That keeps what ax/Sharding/Reshard.h asks of prices as long as the way
// between hosts is not the faster one: one collective over two axes is then
// never dearer than one over each.
//
//===----------------------------------------------------------------------===//
#include "ax/Cost/OpCost.h"
#include "ax/Dialect/MeshAxes.h"

#include <algorithm>

using namespace ax;
using sharding::StepKind;

/// Returns how far apart, in ranks, neighbours of an axis in space are.
static int64_t strideOf(llvm::StringRef name, const sharding::Mesh &mesh) {
  int64_t stride = 1;
  for (const sharding::Axis &axis : llvm::reverse(mesh.getAxes())) {
    if (axis.name == name)
      return stride;
    if (!axis.inTime)
      stride *= axis.size;
  }
  return stride;
}

static cost::Spread spreadOf(const sharding::SubAxes &axes,
                             const sharding::Mesh &mesh, int64_t ranksPerHost) {
  cost::Spread spread;
  for (const sharding::SubAxis &digit : axes) {
    if (ranksPerHost == 0) {
      spread.inHost *= digit.size;
      continue;
    }
    int64_t stride = strideOf(digit.axis, mesh) * mesh.axisSize(digit.axis) /
                     (digit.pre * digit.size);
    int64_t inHost = std::clamp<int64_t>(ranksPerHost / stride, 1, digit.size);
    spread.inHost *= inHost;
    spread.hosts *= (digit.size + inHost - 1) / inHost;
  }
  return spread;
}

double cost::exchangeSeconds(StepKind kind, Spread spread, double bytes,
                             const MachineRates &machine) {
  const Link &link = machine.link, &hostLink = machine.hostLink;
  sharding::RingCost within{link.latency, link.bytesPerSecond};
  sharding::RingCost between{hostLink.latency, hostLink.bytesPerSecond};
  auto [inHost, hosts] = spread;
  if (kind == StepKind::CollectivePermute)
    return (hosts > 1 ? between : within).seconds(kind, inHost * hosts, bytes);
  double seconds =
      within.seconds(kind, inHost, bytes) +
      between.seconds(kind, hosts, bytes / static_cast<double>(inHost));
  if (kind != StepKind::AllToAll || hosts == 1)
    return seconds;
  // Nobody passes anything on for another one.
  double ofHost = bytes / static_cast<double>(hosts);
  return std::max(seconds, within.seconds(kind, inHost, ofHost) +
                               between.seconds(kind, hosts, bytes));
}

sharding::CostFn cost::collectiveCost(const sharding::Mesh &mesh,
                                      const Machine &machine) {
  return [mesh, rates = static_cast<const MachineRates &>(machine)](
             StepKind kind, const sharding::SubAxes &axes, int64_t payload) {
    return exchangeSeconds(kind, spreadOf(axes, mesh, rates.ranksPerHost),
                           static_cast<double>(payload), rates);
  };
}

double cost::transferSeconds(double bytes, int64_t from, int64_t to,
                             const sharding::Mesh &mesh,
                             const Machine &machine) {
  int64_t stride = strideOf(meshAxis::pipe, mesh);
  bool isWithin =
      machine.ranksPerHost == 0 || from * stride / machine.ranksPerHost ==
                                       to * stride / machine.ranksPerHost;
  return (isWithin ? machine.link : machine.hostLink).seconds(bytes);
}
