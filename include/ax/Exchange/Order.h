//===- Order.h - What ranks exchange, one at a time -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of two operations that a rank has begun, NCCL promises no progress but of the
// first: a receive that is posted ahead holds up whatever is behind it. So each
// rank's operations go out in one order, and this is the rule for them:
//
//  - in order: a rank begins an operation when those before it have ended;
//  - rendezvous: a send and its receive, or all ranks of a collective, end when
//    they are all at the heads of their ranks' orders at the same time;
//  - groups: messages may be at the head together. Each meets its other end as
//    soon as that is at a head, too; the group has ended when all of its
//    messages have.
//
// Who meets whom never depends on timing, and a meeting never prevents another
// one, so that ranks end for all timings or for none.
//
// What an action sends, and then what the next one receives, cannot go out one
// by one. 1F1B of 2 stages and 3 micro-batches, where > sends and < receives
// what is behind it:
//
//   stage 0   F0 >F0  F1 >F1  <B0 B0  F2 >F2  <B1 B1  <B2 B2
//   stage 1   <F0 F0  B0 >B0  <F1 F1  B1 >B1  <F2 F2  B2 >B2
//
// F0 is exchanged. Then stage 0 sends F1, which stage 1 will receive when it
// has sent B0, which stage 0 will receive when it has sent F1: for ever. What
// stands between two actions makes a group instead,
//
//   stage 0   F0 (>F0)  F1 (>F1 <B0)  B0  F2 (>F2 <B1)  B1 (<B2)  B2
//   stage 1   (<F0) F0  B0 (>B0 <F1)  F1  B1 (>B1 <F2)  F2  B2 (>B2)
//
// and all ends. A receive stands before the action that needs it, as late as it
// can be: computing, and all exchanges behind it, wait for a group. Where that
// is too late for whoever sends, as in interleaved schedules, an earlier group
// receives it ahead, into a slot that is free by then. What a group receives
// never decides what it sends, since it stands between two actions.
//
// How groups are found says in which order their messages meet; in that order
// they may as well go out one after another. With NCCL they do: in a group of
// its own (ncclGroupStart) messages with one peer wait for each other, and who
// connects for the first time waits for all of the group's peers at once.
//
//===----------------------------------------------------------------------===//
#ifndef AX_EXCHANGE_ORDER_H
#define AX_EXCHANGE_ORDER_H

#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ax::exchange {

/// What some ranks do together, any number of times. What is another operation,
/// or one of other ranks, is another collective.
struct Collective {
  std::string name;
  /// Each once.
  std::vector<int32_t> ranks;
};

/// Values that one rank sends to another one.
struct Transfer {
  std::string name;
  int32_t from = 0, to = 0;
  /// How many of them the receiver has room for: the n-th has the room of the
  /// (n - slots)-th, when the action that took that has ended and all that it
  /// sends, which may be that value itself, is gone.
  int64_t slots = 1;
};

struct Network {
  std::vector<Collective> collectives;
  std::vector<Transfer> transfers;
};

/// One of a rank's exchanges. No two of a rank's have the same micro-batch of
/// one transfer.
struct Operation {
  enum class Kind { Collective, Send, Receive };
  Kind kind = Kind::Collective;
  /// Into the network's collectives or transfers.
  int32_t number = 0;
  int32_t microBatch = 0;

  bool operator==(const Operation &o) const {
    return kind == o.kind && number == o.number && microBatch == o.microBatch;
  }
};

/// What a rank has at its head at the same time: a collective, or messages.
using Group = std::vector<Operation>;
/// The groups of one rank.
using Order = std::vector<Group>;

/// Returns the order in which each operation is a group of its own.
Order ungroup(const Order &order);

/// A rank that waits for another one for ever.
struct Wait {
  int32_t rank = 0;
  /// The place of the group at its head in its order, and what of it waits.
  size_t group = 0;
  Operation operation;
  /// Who is not where it would meet.
  int32_t other = 0;
};

/// Each of them waits for the next, and the last for the first; or for a rank
/// that has ended, where `hasEnded`.
struct Deadlock {
  std::vector<Wait> waits;
  bool hasEnded = false;
};

/// Returns why the ranks, each in its order, do not end by the rule above;
/// nothing where they do.
std::optional<Deadlock> findDeadlock(const Network &network,
                                     const std::vector<Order> &orders);

/// Returns it for people: `stage 0, before B0, waits to receive 'g' of
/// micro-batch 0 from stage 1; stage 1, ...`. `nameOf` a rank: `stage 0`;
/// `placeOf` a group: `before B0`, or nothing.
std::string
describe(const Deadlock &deadlock, const Network &network,
         llvm::function_ref<std::string(int32_t rank)> nameOf,
         llvm::function_ref<std::string(int32_t rank, size_t group)> placeOf);

/// `rank 3`, or `ranks 0, 1, 2, 3 and 4 more`.
std::string describeRanks(const std::vector<int32_t> &ranks);

/// What a rank does in one go: it takes values, then gives some.
struct Action {
  int32_t microBatch = 0;
  /// Transfers to the rank, and from it.
  std::vector<int32_t> receives, sends;
};

struct Grouping {
  /// The order of each rank: groups 2i and 2i + 1 stand before its action i,
  /// and the last two behind all of them; many are empty. The second one
  /// receives what has no room before the first has ended. Messages of a group
  /// are in the order in which they meet. So two ranks have what goes from the
  /// one to the other in the same order, by which NCCL matches it, which has no
  /// tags; and ranks would end without groups, too, but waiting for one message
  /// after another.
  std::vector<Order> orders;
  /// Why there are no such groups; `orders` has them as far as they went.
  std::optional<Deadlock> deadlock;
};

/// Returns groups with which the ranks, each of which does its actions in
/// order, end by the rule above: what the action before has sent, what the next
/// one receives, and of what later ones receive only that without which nobody
/// could go on. There are such groups whenever the ranks would end with every
/// receive begun as soon as its slot is free. Of a transfer, the actions that
/// send and those that receive have the same micro-batches. The same input
/// gives the same groups.
Grouping groupMessages(const std::vector<Transfer> &transfers,
                       const std::vector<std::vector<Action>> &ranks);

} // namespace ax::exchange

#endif // AX_EXCHANGE_ORDER_H
