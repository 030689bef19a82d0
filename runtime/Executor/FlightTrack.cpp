//===- FlightTrack.cpp - A rank's exchanges, on to its log ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "FlightTrack.h"

#include "llvm/ADT/STLExtras.h"

#include <chrono>

namespace ax::rt {

/// Of the clock that events have.
static int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

FlightTrack::FlightTrack(FlightLog &log, const RankContext &context,
                         std::function<FlightPlace()> where)
    : log(log), ring(log.getRing()), executor(log.enter(std::move(where))) {
  for (const CommandList &list : context.stage->lists) {
    std::map<int32_t, size_t> requests;
    for (const Command &command : list.commands)
      add(context, command, requests);
  }
}

FlightTrack::~FlightTrack() { log.leave(executor); }

/// `requests`: the exchanges that were started in the list.
void FlightTrack::add(const RankContext &context, const Command &command,
                      std::map<int32_t, size_t> &requests) {
  Mark &mark = marks.emplace_back();
  if (const auto *wait = std::get_if<WaitCommand>(&command.body)) {
    mark.ends = true;
    mark.exchange = requests.at(wait->request);
    return;
  }
  const auto *collective = std::get_if<CollectiveCommand>(&command.body);
  const auto *send = std::get_if<SendCommand>(&command.body);
  const auto *receive = std::get_if<RecvCommand>(&command.body);
  if (!collective && !send && !receive)
    return;
  mark.begins = true;
  mark.ends = !collective || collective->request < 0;
  mark.exchange = exchanges.size();
  FlightOperation operation;
  if (collective) {
    if (collective->request >= 0)
      requests[collective->request] = mark.exchange;
    CollectiveSpecs specs(collective->parts.begin(), collective->parts.end());
    operation.what = toString(specs);
    operation.kind = llvm::StringRef(operation.what).split(' ').first.str();
    for (const CollectivePart &part : collective->parts)
      operation.bytes += sourceBytes(part);
    const GroupSet &set =
        context.stage->groups[static_cast<size_t>(collective->groupSet)];
    for (const std::vector<int32_t> &ranks : set.groups)
      if (llvm::is_contained(ranks, context.rank))
        return addExchange(context, command, std::move(operation), set.name,
                           ranks);
    return;
  }
  const Program &program = context.program;
  const Transfer &transfer = program.transfers[static_cast<size_t>(
      send ? send->transfer : receive->transfer)];
  operation.kind = send ? "send" : "receive";
  operation.what = describe(program, *context.stage, command);
  operation.bytes = transfer.bytes;
  auto rankOf = [&](int32_t stage) {
    return program.stages[static_cast<size_t>(stage)].ranks[context.position];
  };
  addExchange(context, command, std::move(operation),
              program.name + ": " + transfer.name,
              {rankOf(transfer.fromStage), rankOf(transfer.toStage)});
}

void FlightTrack::addExchange(const RankContext &context,
                              const Command &command, FlightOperation operation,
                              const std::string &group,
                              const std::vector<int32_t> &ranks) {
  bool isTransfer = !std::holds_alternative<CollectiveCommand>(command.body);
  operation.group = log.openGroup(group, ranks, isTransfer);
  operation.executor = executor;
  operation.name = command.name;
  operation.program = context.program.name;
  operation.stage = context.stage->name;
  operation.nodes = command.nodes;
  FlightGroup &opened = log.getGroup(operation.group);
  exchanges.push_back({log.addOperation(std::move(operation)), &opened, 0});
}

void FlightTrack::note(const Mark &mark, int32_t microBatch) {
  Exchange &exchange = exchanges[mark.exchange];
  int64_t time = now();
  if (mark.begins) {
    std::atomic<uint64_t> &started = exchange.group->started;
    uint64_t sequence = started.load(std::memory_order_relaxed);
    exchange.event = ring.add(exchange.operation, microBatch, sequence, time);
    started.store(sequence + 1, std::memory_order_relaxed);
  }
  if (mark.ends)
    ring.setWaited(exchange.event, time);
}

void FlightTrack::finish(Exchange &exchange, uint64_t count) {
  ring.setFinished(exchange.event, now(), count);
  std::atomic<uint64_t> &finished = exchange.group->finished;
  finished.store(finished.load(std::memory_order_relaxed) + 1,
                 std::memory_order_relaxed);
}

} // namespace ax::rt
