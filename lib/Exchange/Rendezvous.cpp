//===- Rendezvous.cpp - Ranks that meet -----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Rendezvous.h"

#include <algorithm>
#include <utility>

namespace ax::exchange {

using Kind = Operation::Kind;

/// The other end of a message.
static Operation counterpart(Operation message) {
  message.kind = message.kind == Kind::Send ? Kind::Receive : Kind::Send;
  return message;
}

Rendezvous::Rendezvous(const Network &network, std::vector<Order> given)
    : network(network), orders(std::move(given)), heads(orders.size()),
      numReceived(network.transfers.size()) {
  for (size_t rank = 0; rank < orders.size(); ++rank)
    enter(static_cast<int32_t>(rank));
}

void Rendezvous::run() {
  while (!moved.empty()) {
    int32_t rank = moved.back();
    moved.pop_back();
    // It may have gone on, and be here again, since it was put there.
    if (std::exchange(heads[rank].hasLooked, true))
      continue;
    for (const Operation &operation : waitingOf(rank))
      arrive(rank, operation);
  }
}

/// The rank has come to its next group that is not empty.
void Rendezvous::enter(int32_t rank) {
  Head &head = heads[rank];
  while (head.group < orders[rank].size() && orders[rank][head.group].empty())
    ++head.group;
  if (hasEnded(rank))
    return;
  moved.push_back(rank);
}

std::vector<Operation> Rendezvous::waitingOf(int32_t rank) const {
  if (hasEnded(rank))
    return {};
  const Head &head = heads[rank];
  const Group &group = orders[rank][head.group];
  return {group.begin() + static_cast<std::ptrdiff_t>(head.numMet),
          group.end()};
}

int32_t Rendezvous::otherEnd(const Operation &message) const {
  const Transfer &transfer = network.transfers[message.number];
  return message.kind == Kind::Send ? transfer.to : transfer.from;
}

int64_t Rendezvous::find(int32_t rank, const Operation &operation) const {
  if (hasEnded(rank))
    return -1;
  const Group &group = orders[rank][heads[rank].group];
  auto begin = group.begin() + static_cast<std::ptrdiff_t>(heads[rank].numMet);
  auto found = std::find(begin, group.end(), operation);
  return found == group.end() ? -1 : found - group.begin();
}

void Rendezvous::arrive(int32_t rank, const Operation &operation) {
  if (operation.kind != Kind::Collective) {
    int32_t other = otherEnd(operation);
    if (find(rank, operation) < 0 || find(other, counterpart(operation)) < 0)
      return;
    meet(rank, operation);
    meet(other, counterpart(operation));
    return;
  }
  const std::vector<int32_t> &ranks =
      network.collectives[operation.number].ranks;
  size_t &count = arrived[{operation.number, operation.microBatch}];
  if (++count < ranks.size())
    return;
  count = 0;
  for (int32_t member : ranks)
    meet(member, operation);
}

void Rendezvous::meet(int32_t rank, const Operation &operation) {
  if (operation.kind == Kind::Receive)
    ++numReceived[operation.number];
  Head &head = heads[rank];
  Group &group = orders[rank][head.group];
  std::swap(group[static_cast<size_t>(find(rank, operation))],
            group[head.numMet]);
  if (++head.numMet < group.size())
    return;
  head = {head.group + 1};
  enter(rank);
}

void Rendezvous::split(int32_t rank) {
  Head &head = heads[rank];
  std::vector<Operation> rest = waitingOf(rank);
  orders[rank][head.group].resize(head.numMet);
  head = {head.group + 1};
  Group &next = orders[rank][head.group];
  next.insert(next.begin(), rest.begin(), rest.end());
  enter(rank);
}

void Rendezvous::moveToHead(int32_t rank, size_t group,
                            const Operation &operation) {
  Group &from = orders[rank][group];
  from.erase(std::find(from.begin(), from.end(), operation));
  orders[rank][heads[rank].group].push_back(operation);
  arrive(rank, operation);
}

std::optional<Deadlock> Rendezvous::findDeadlock() const {
  auto waitOf = [&](int32_t rank) {
    Operation operation = waitingOf(rank).front();
    Wait wait{rank, headOf(rank), operation, 0};
    if (operation.kind != Kind::Collective) {
      wait.other = otherEnd(operation);
      return wait;
    }
    for (int32_t member : network.collectives[operation.number].ranks)
      if (find(member, operation) < 0) {
        wait.other = member;
        break;
      }
    return wait;
  };
  int32_t rank = 0;
  while (static_cast<size_t>(rank) < orders.size() && hasEnded(rank))
    ++rank;
  if (static_cast<size_t>(rank) == orders.size())
    return std::nullopt;
  Deadlock deadlock;
  std::vector<Wait> &waits = deadlock.waits;
  auto isRank = [&](const Wait &wait) { return wait.rank == rank; };
  // From each who waits to whom it waits for, until one comes again: what leads
  // to the circle is none of it.
  for (;;) {
    auto first = std::find_if(waits.begin(), waits.end(), isRank);
    if (first != waits.end()) {
      waits.erase(waits.begin(), first);
      return deadlock;
    }
    if (hasEnded(rank)) {
      waits.erase(waits.begin(), waits.end() - 1);
      deadlock.hasEnded = true;
      return deadlock;
    }
    waits.push_back(waitOf(rank));
    rank = waits.back().other;
  }
}

} // namespace ax::exchange
