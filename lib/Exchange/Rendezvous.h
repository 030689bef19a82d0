//===- Rendezvous.h - Ranks that meet ---------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_EXCHANGE_RENDEZVOUS_H
#define AX_LIB_EXCHANGE_RENDEZVOUS_H

#include "ax/Exchange/Order.h"

#include <map>

namespace ax::exchange {

/// Plays orders by the rule, as far as they go.
class Rendezvous {
public:
  Rendezvous(const Network &network, std::vector<Order> orders);

  /// Goes on until no rank can.
  void run();
  bool hasEnded(int32_t rank) const {
    return heads[rank].group == orders[rank].size();
  }
  /// The place of the group at a rank's head.
  size_t headOf(int32_t rank) const { return heads[rank].group; }
  /// Its messages and collectives that have not met.
  std::vector<Operation> waitingOf(int32_t rank) const;
  /// How many values of a transfer have met their receivers.
  size_t getNumReceived(int32_t transfer) const {
    return numReceived[transfer];
  }
  /// The group at the rank's head ends with what of it has met; the rest is in
  /// the next one.
  void split(int32_t rank);
  /// Puts a message of another group of the rank into the one at its head.
  void moveToHead(int32_t rank, size_t group, const Operation &operation);
  /// Who waits for whom; nothing when all ranks have ended.
  std::optional<Deadlock> findDeadlock() const;
  /// The orders; messages of groups in the order in which they met.
  std::vector<Order> take() { return std::move(orders); }

private:
  struct Head {
    size_t group = 0;
    /// The first so many of the group have met.
    size_t numMet = 0;
    /// The rank has looked who is there.
    bool hasLooked = false;
  };

  int32_t otherEnd(const Operation &operation) const;
  /// The place in its rank's head group of what is there and has not met; -1:
  /// it is not there.
  int64_t find(int32_t rank, const Operation &operation) const;
  /// What is now at the rank's head meets what is there already.
  void arrive(int32_t rank, const Operation &operation);
  void meet(int32_t rank, const Operation &operation);
  void enter(int32_t rank);

  const Network &network;
  std::vector<Order> orders;
  std::vector<Head> heads;
  /// How many ranks have a collective of a micro-batch at their heads.
  std::map<std::pair<int32_t, int32_t>, size_t> arrived;
  /// By transfers.
  std::vector<size_t> numReceived;
  /// Ranks that have come to another group.
  std::vector<int32_t> moved;
};

} // namespace ax::exchange

#endif // AX_LIB_EXCHANGE_RENDEZVOUS_H
