//===- GroupMessages.cpp - Messages that are begun together ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each rank begins with one group between two actions: what the one has sent
// and the other one receives. The ranks are played; when none can go on, one of
// those that send is chosen whose receiver has a free slot, and the receive is
// moved into the group at which the receiver waits. That meets at once, so that
// it holds nobody up, and whatever else waited may go on.
//
// A slot that the action before has read may still be sent from: so what is
// received there has a second group, behind that.
//
//===----------------------------------------------------------------------===//
#include "Rendezvous.h"

#include "llvm/ADT/STLExtras.h"

namespace ax::exchange {

namespace {

using Kind = Operation::Kind;

class Grouper {
public:
  Grouper(const std::vector<Transfer> &transfers,
          const std::vector<std::vector<Action>> &ranks)
      : network{{}, transfers}, numRanks(ranks.size()),
        values(transfers.size()), rendezvous(network, makeOrders(ranks)) {}

  Grouping run() {
    do
      rendezvous.run();
    while (receiveAhead());
    Grouping result;
    result.deadlock = rendezvous.findDeadlock();
    result.orders = rendezvous.take();
    return result;
  }

private:
  /// One value of a transfer at its receiver.
  struct Received {
    int32_t microBatch = 0;
    /// Which of the rank's actions takes it, and the group that it is in if
    /// none receives it ahead.
    size_t action = 0, group = 0;
  };

  std::vector<Order> makeOrders(const std::vector<std::vector<Action>> &ranks) {
    std::vector<Order> orders;
    for (const std::vector<Action> &actions : ranks) {
      Order &order = orders.emplace_back(2 * (actions.size() + 1));
      for (size_t i = 0; i < actions.size(); ++i) {
        const Action &action = actions[i];
        for (int32_t transfer : action.receives) {
          const Received *before =
              beforeInSlot(transfer, values[transfer].size());
          bool isLate = before && before->action + 1 == i &&
                        !actions[before->action].sends.empty();
          size_t group = 2 * i + (isLate ? 1 : 0);
          order[group].push_back({Kind::Receive, transfer, action.microBatch});
          values[transfer].push_back({action.microBatch, i, group});
        }
        for (int32_t transfer : action.sends)
          order[2 * i + 2].push_back({Kind::Send, transfer, action.microBatch});
      }
    }
    return orders;
  }

  /// The value that had the slot before the n-th of a transfer; null: none had.
  const Received *beforeInSlot(int32_t transfer, size_t n) const {
    auto slots = static_cast<size_t>(network.transfers[transfer].slots);
    return n < slots ? nullptr : &values[transfer][n - slots];
  }

  /// One value that somebody waits to send; false when there is no room for
  /// any.
  bool receiveAhead() {
    for (size_t rank = 0; rank < numRanks; ++rank)
      for (const Operation &waiting :
           rendezvous.waitingOf(static_cast<int32_t>(rank)))
        if (waiting.kind == Kind::Send && receiveAhead(waiting))
          return true;
    return false;
  }

  bool receiveAhead(const Operation &send) {
    int32_t rank = network.transfers[send.number].to;
    // A transfer's values come in their order.
    size_t n = rendezvous.getNumReceived(send.number);
    const std::vector<Received> &all = values[send.number];
    if (n == all.size() || all[n].microBatch != send.microBatch)
      return false;
    // The group at the head stands behind the action before this one.
    size_t head = rendezvous.headOf(rank), action = head / 2;
    if (const Received *before = beforeInSlot(send.number, n)) {
      if (before->action >= action)
        return false;
      if (before->action + 1 == action && head % 2 == 0) {
        if (llvm::any_of(rendezvous.waitingOf(rank),
                         [](const Operation &other) {
                           return other.kind == Kind::Send;
                         }))
          return false;
        rendezvous.split(rank);
      }
    }
    rendezvous.moveToHead(rank, all[n].group,
                          {Kind::Receive, send.number, send.microBatch});
    return true;
  }

  Network network;
  size_t numRanks;
  /// Of each transfer, in the receiver's order.
  std::vector<std::vector<Received>> values;
  Rendezvous rendezvous;
};

} // namespace

Grouping groupMessages(const std::vector<Transfer> &transfers,
                       const std::vector<std::vector<Action>> &ranks) {
  return Grouper(transfers, ranks).run();
}

} // namespace ax::exchange
