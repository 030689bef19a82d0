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
// never dearer than one over each. Where groups over an axis lie on hosts
// unlike each other, as neighbouring pairs do on hosts of three ranks, the
// price is that of the worst, which may be more than what two collectives would
// take.
//
//===----------------------------------------------------------------------===//
#include "ax/Cost/OpCost.h"
#include "ax/Dialect/MeshAxes.h"

#include "llvm/ADT/DenseMap.h"

#include <algorithm>
#include <map>
#include <memory>

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

cost::Spread cost::spreadOf(llvm::ArrayRef<int64_t> group,
                            int64_t ranksPerHost) {
  auto numRanks = static_cast<int64_t>(group.size());
  if (ranksPerHost == 0)
    return {numRanks, 1};
  llvm::SmallDenseMap<int64_t, int64_t> onHost;
  for (int64_t rank : group)
    ++onHost[rank / ranksPerHost];
  // Those of the host that has fewest take its part of all to the others.
  for (auto [host, count] : onHost)
    numRanks = std::min(numRanks, count);
  return {numRanks, static_cast<int64_t>(onHost.size())};
}

cost::Spread cost::worseOf(Spread a, Spread b) {
  return {std::min(a.inHost, b.inHost), std::max(a.hosts, b.hosts)};
}

/// Whether all groups over the axes lie on hosts alike, as on 4 ranks a host
/// those of neighbouring pairs do, and those of neighbouring threes do not.
static bool areAlike(const sharding::SubAxes &axes, const sharding::Mesh &mesh,
                     int64_t ranksPerHost) {
  auto nests = [&](int64_t ranks) {
    return ranksPerHost % ranks == 0 || ranks % ranksPerHost == 0;
  };
  return llvm::all_of(axes, [&](const sharding::SubAxis &digit) {
    int64_t all = strideOf(digit.axis, mesh) * mesh.axisSize(digit.axis);
    int64_t outer = all / digit.pre;
    return nests(outer) && nests(outer / digit.size);
  });
}

/// The worst of all groups.
static cost::Spread spreadOf(const sharding::SubAxes &axes,
                             const sharding::Mesh &mesh, int64_t ranksPerHost) {
  if (ranksPerHost == 0)
    return {sharding::numParts(axes), 1};
  cost::Spread spread = cost::spreadOf(mesh.group(axes, 0), ranksPerHost);
  if (areAlike(axes, mesh, ranksPerHost))
    return spread;
  for (int64_t rank = 1; rank < mesh.numRanks(); ++rank)
    if (std::vector<int64_t> group = mesh.group(axes, rank);
        group.front() == rank)
      spread = cost::worseOf(spread, cost::spreadOf(group, ranksPerHost));
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
  // Of a large mesh it takes long to find one.
  auto known = std::make_shared<std::map<sharding::SubAxes, Spread>>();
  return [mesh, known, rates = static_cast<const MachineRates &>(machine)](
             StepKind kind, const sharding::SubAxes &axes, int64_t payload) {
    auto [at, isNew] = known->try_emplace(axes);
    if (isNew)
      at->second = ::spreadOf(axes, mesh, rates.ranksPerHost);
    return exchangeSeconds(kind, at->second, static_cast<double>(payload),
                           rates);
  };
}

const Link &cost::linkBetween(int64_t from, int64_t to,
                              const sharding::Mesh &mesh,
                              const Machine &machine) {
  int64_t ranksPerHost = machine.ranksPerHost;
  int64_t stride = strideOf(meshAxis::pipe, mesh);
  int64_t size = mesh.axisSize(meshAxis::pipe);
  for (int64_t rank = 0; ranksPerHost && rank < mesh.numRanks(); ++rank)
    if (rank / stride % size == from &&
        rank / ranksPerHost != (rank + (to - from) * stride) / ranksPerHost)
      return machine.hostLink;
  return machine.link;
}
