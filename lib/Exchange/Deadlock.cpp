//===- Deadlock.cpp - Who waits for whom ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Rendezvous.h"

#include <algorithm>

namespace ax::exchange {

Order ungroup(const Order &order) {
  Order single;
  for (const Group &group : order)
    for (const Operation &operation : group)
      single.push_back({operation});
  return single;
}

std::optional<Deadlock> findDeadlock(const Network &network,
                                     const std::vector<Order> &orders) {
  Rendezvous rendezvous(network, orders);
  rendezvous.run();
  return rendezvous.findDeadlock();
}

/// `receive 'g' of micro-batch 0 from `, or the like.
static std::string textOf(const Operation &operation, const Network &network) {
  auto number = static_cast<size_t>(operation.number);
  auto text = [&](const char *verb, const std::string &name, const char *to) {
    return verb + (name.empty() ? "" : "'" + name + "' of ") + "micro-batch " +
           std::to_string(operation.microBatch) + to;
  };
  switch (operation.kind) {
  case Operation::Kind::Collective:
    return text("do ", network.collectives[number].name, " with ");
  case Operation::Kind::Send:
    return text("send ", network.transfers[number].name, " to ");
  case Operation::Kind::Receive:
    return text("receive ", network.transfers[number].name, " from ");
  }
  return "";
}

std::string
describe(const Deadlock &deadlock, const Network &network,
         llvm::function_ref<std::string(int32_t rank)> nameOf,
         llvm::function_ref<std::string(int32_t rank, size_t group)> placeOf) {
  std::string text;
  for (const Wait &wait : deadlock.waits) {
    text += (text.empty() ? "" : "; ") + nameOf(wait.rank);
    if (std::string place = placeOf(wait.rank, wait.group); !place.empty())
      text += ", " + place + ",";
    text += " waits to " + textOf(wait.operation, network) + nameOf(wait.other);
  }
  if (deadlock.hasEnded)
    text += ", which has ended";
  return text;
}

std::string describeRanks(const std::vector<int32_t> &ranks) {
  constexpr size_t most = 4;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < std::min(ranks.size(), most); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  if (ranks.size() > most)
    text += " and " + std::to_string(ranks.size() - most) + " more";
  return text;
}

} // namespace ax::exchange
