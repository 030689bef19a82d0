//===- FlightTrack.cpp - A rank's exchanges, on to its log ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "FlightTrack.h"

#include "PreparedExchanges.h"

#include "llvm/ADT/STLExtras.h"

namespace ax::rt {

FlightTrack::FlightTrack(FlightLog &log, const RankContext &context,
                         FlightSource source)
    : log(log), getPlace(source.getPlace),
      executor(log.enter(std::move(source))), stage(*context.stage) {
  for (const CommandList &list : stage.lists) {
    firstMark.push_back(marks.size());
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
  operation.tag = send ? send->transfer : receive->transfer;
  const Transfer &transfer =
      program.transfers[static_cast<size_t>(operation.tag)];
  operation.kind = send ? "send" : "receive";
  operation.what = rt::describe(program, *context.stage, command);
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
  operation.executor = executor;
  operation.name = command.name;
  operation.program = context.program.name;
  operation.stage = context.stage->name;
  operation.nodes = command.nodes;
  exchanges.emplace_back(log, std::move(operation), group, ranks, isTransfer);
}

std::string FlightTrack::describe(size_t command) const {
  const Mark &mark = marks[command];
  if (!mark.begins && !mark.ends)
    return "";
  return ", " + exchanges[mark.exchange].describe(getPlace());
}

void FlightTrack::list(PreparedExchanges &to) const {
  for (const FlightExchange &exchange : exchanges)
    to.add(exchange);
  for (const Action &action : stage.schedule) {
    auto list = static_cast<size_t>(action.list);
    size_t end = firstMark[list] + stage.lists[list].commands.size();
    for (size_t i = firstMark[list]; i < end; ++i)
      if (marks[i].begins)
        to.addStart(exchanges[marks[i].exchange], action.microBatch);
  }
}

} // namespace ax::rt
