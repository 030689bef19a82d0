//===- ExchangeOrder.h - What a rank exchanges, in one order ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For communicators by which a rank exchanges one at a time, as NCCL:
// ax/Exchange/Order.h has the rule and an example. Of a program there is one
// order for each stage, the same for all of its ranks, which is worked out from
// the schedules when the program is prepared. Ranks that have equal programs
// have orders that fit each other. A step's order comes after that of the step
// before; nothing is received ahead across steps.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_EXCHANGEORDER_H
#define AX_RUNTIME_EXCHANGEORDER_H

#include "ax/Runtime/Program.h"

#include "llvm/Support/Error.h"

namespace ax::rt {

/// A command that exchanges, once: CollectiveCommand, SendCommand or
/// RecvCommand.
struct Exchange {
  /// The entry of the stage's schedule that it is done for, which says the list
  /// and the micro-batch. Messages may go out elsewhere: ExchangeGroup.
  int32_t action = 0;
  /// Which command of that list.
  int32_t command = 0;
};

/// What a rank begins at once, and has to end before it begins the next group:
/// a collective, or one or more messages. The i-th rank of a stage sends to the
/// i-th of another one, and receives from it.
struct ExchangeGroup {
  /// An entry of the stage's schedule. A collective is begun in it, where its
  /// command stands; messages are begun before its first command and behind the
  /// last one of the entry before, for whose list all of the sends are: up to
  /// two groups. The schedule's size: at the end of the step.
  int32_t action = 0;
  bool isCollective = false;
  /// Receives are for this entry, or for later ones: these have free slots,
  /// from which no other message of the group is sent. Of two ranks, both have
  /// the messages from the one to the other in this order.
  std::vector<Exchange> exchanges;
};

/// The groups of a step in the order in which each rank of a stage begins them:
/// by `action`, messages before collectives.
using ExchangeOrder = std::vector<ExchangeGroup>;

/// Returns the order of each stage of a program in which all else is right:
/// with it, all ranks end. A BadPlan error, who waits for whom, where schedules
/// and slots are such that there is none.
llvm::Expected<std::vector<ExchangeOrder>>
orderExchanges(const Program &program);

} // namespace ax::rt

#endif // AX_RUNTIME_EXCHANGEORDER_H
