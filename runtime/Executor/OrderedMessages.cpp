//===- OrderedMessages.cpp - Messages of a rank with one order ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a communicator is ordered, messages go out between the actions of the
// schedule, in the groups of ExchangeOrder.h: what an action sends when it is
// done, what another one receives before it begins. SendCommands only say what
// is sent, and ReceiveCommands wait for what was received.
//
//===----------------------------------------------------------------------===//

#include "RankExecutor.h"

namespace ax::rt {

void RankExecutor::orderMessages(const ExchangeOrder &order) {
  messageGroups.resize(stage->schedule.size() + 1);
  for (const ExchangeGroup &group : order) {
    if (group.isCollective)
      continue;
    std::vector<Message> &messages =
        messageGroups[static_cast<size_t>(group.action)].emplace_back();
    for (const Exchange &exchange : group.exchanges) {
      auto entry = static_cast<size_t>(exchange.action);
      auto list = static_cast<size_t>(stage->schedule[entry].list);
      messages.push_back(
          {entry, firstStep[list] + static_cast<size_t>(exchange.command)});
    }
  }
}

llvm::Error RankExecutor::startMessage(const Message &message) {
  Step &step = steps[message.step];
  if (isSend(step))
    return step.operation->start(streams.send.get(), step.addresses);
  Incoming &in = incoming[step.target];
  size_t slot = turnOf(message.entry, numEnded).slotOf(in.slots.size());
  return in.receives[slot]->start(
      streams.receive.get(), {DeviceAddress(), in.slots[slot]->getAddress()});
}

llvm::Error RankExecutor::exchangeBefore(size_t entry) {
  for (const std::vector<Message> &messages : messageGroups[entry])
    if (llvm::Error error = exchangeTogether(messages))
      return error;
  return llvm::Error::success();
}

llvm::Error
RankExecutor::exchangeTogether(const std::vector<Message> &messages) {
  Stream &compute = *streams.compute;
  std::vector<Message> sends;
  for (const Message &message : messages)
    if (isSend(steps[message.step]))
      sends.push_back(message);
  if (!sends.empty())
    if (llvm::Error error = beginStep(sends.front()))
      return error;
  // A slot is free, and what is sent is there, where computing is now.
  for (SideStream *side : {&streams.send, &streams.receive})
    if (llvm::Error error = side->enter(compute))
      return error;
  if (llvm::Error error =
          context.communicator.startTogether([&]() -> llvm::Error {
            for (const Message &message : messages)
              if (llvm::Error error = startMessage(message))
                return error;
            return llvm::Error::success();
          }))
    return error;
  if (sends.empty())
    return llvm::Error::success();
  for (const Message &message : sends)
    if (llvm::Error error =
            steps[message.step].operation->finish(streams.send.get()))
      return error;
  // Only then others may have the place of what is sent.
  if (llvm::Error error = streams.send.leave(compute))
    return error;
  // In a trace the first has the time of all.
  for (size_t i = 0; i < sends.size(); ++i) {
    if (i > 0)
      if (llvm::Error error = beginStep(sends[i]))
        return error;
    if (llvm::Error error = endStep(sends[i].step))
      return error;
  }
  return llvm::Error::success();
}

} // namespace ax::rt
