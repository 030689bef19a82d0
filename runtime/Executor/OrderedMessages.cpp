//===- OrderedMessages.cpp - Messages of a rank with one order ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a communicator is ordered, messages go out between the actions of the
// schedule, in the groups of ExchangeOrder.h: what an action sends when it is
// done, what another one receives before it begins. SendCommands only say what
// is sent, and RecvCommands wait for what was received.
//
// Messages of a group are begun one after another, in the order in which they
// meet, with which ranks end, too. As a group of NCCL's they would not always:
// those with one peer wait for each other there, and to connect for the first
// time waits for all at once.
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
  int32_t microBatch = stage->schedule[message.entry].microBatch;
  if (isSend(step))
    return putBeside(streams.send, step, microBatch, [&]() -> llvm::Error {
      Stream &stream = streams.send.get();
      if (llvm::Error error = step.operation->start(stream, step.addresses))
        return error;
      return step.operation->finish(stream);
    });
  Incoming &in = incoming[step.target];
  size_t slot = turnOf(message.entry, numEnded).slotOf(in.slots.size());
  return putBeside(streams.receive, step, microBatch, [&] {
    return in.receives[slot]->start(
        streams.receive.get(), {DeviceAddress(), in.slots[slot]->getAddress()});
  });
}

llvm::Error RankExecutor::exchangeBefore(size_t entry) {
  if (!isOrdered())
    return llvm::Error::success();
  for (const std::vector<Message> &messages : messageGroups[entry])
    if (llvm::Error error = exchange(messages))
      return error;
  return llvm::Error::success();
}

llvm::Error RankExecutor::exchange(const std::vector<Message> &messages) {
  Stream &compute = *streams.compute;
  // A slot is free, and what is sent is there, where computing is now.
  for (SideStream *side : {&streams.send, &streams.receive})
    if (llvm::Error error = side->enter(compute))
      return error;
  for (const Message &message : messages) {
    Step &step = steps[message.step];
    if (!isSend(step)) {
      // What is received is told of where it is waited for.
      if (llvm::Error error =
              progress.begin(compute, static_cast<int32_t>(message.step)))
        return error;
      if (llvm::Error error = startMessage(message))
        return error;
      continue;
    }
    if (llvm::Error error =
            beginStep(message.step, stage->schedule[message.entry].microBatch))
      return error;
    if (llvm::Error error = startMessage(message))
      return error;
    // Only then others may have the place of what is sent.
    if (llvm::Error error = streams.send.leave(compute))
      return error;
    if (llvm::Error error = endStep(message.step))
      return error;
  }
  return llvm::Error::success();
}

} // namespace ax::rt
