//===- ExchangeOrder.cpp - What a rank exchanges, in one order ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/ExchangeOrder.h"

#include "ax/Exchange/Order.h"
#include "ax/Support/Error.h"

#include <map>

namespace ax::rt {

namespace {

using exchange::Operation;

class Orderer {
public:
  explicit Orderer(const Program &program) : program(program) {}

  llvm::Expected<std::vector<ExchangeOrder>> run();

private:
  std::vector<exchange::Action> actionsOf(const StageProgram &stage);
  ExchangeOrder orderOf(const StageProgram &stage,
                        const exchange::Order &messages) const;
  std::string describe(const exchange::Deadlock &deadlock,
                       const exchange::Network &network) const;

  const Program &program;
  /// Of each transfer, which command of its list sends and receives it.
  std::map<int32_t, int32_t> sends, receives;
};

} // namespace

std::vector<exchange::Action> Orderer::actionsOf(const StageProgram &stage) {
  std::vector<exchange::Action> byList;
  for (const CommandList &list : stage.lists) {
    exchange::Action &does = byList.emplace_back();
    for (size_t c = 0; c < list.commands.size(); ++c) {
      auto number = static_cast<int32_t>(c);
      if (const auto *send = std::get_if<SendCommand>(&list.commands[c].body)) {
        does.sends.push_back(send->transfer);
        sends[send->transfer] = number;
      } else if (const auto *receive =
                     std::get_if<RecvCommand>(&list.commands[c].body)) {
        does.receives.push_back(receive->transfer);
        receives[receive->transfer] = number;
      }
    }
  }
  std::vector<exchange::Action> actions;
  for (const Action &action : stage.schedule) {
    actions.push_back(byList[static_cast<size_t>(action.list)]);
    actions.back().microBatch = action.microBatch;
  }
  return actions;
}

ExchangeOrder Orderer::orderOf(const StageProgram &stage,
                               const exchange::Order &messages) const {
  // Where the schedule has a list for a micro-batch.
  std::map<std::pair<int32_t, int32_t>, int32_t> entries;
  for (size_t i = 0; i < stage.schedule.size(); ++i)
    entries[{stage.schedule[i].list, stage.schedule[i].microBatch}] =
        static_cast<int32_t>(i);
  std::map<int32_t, int32_t> listOf;
  for (size_t l = 0; l < stage.lists.size(); ++l)
    for (const Command &command : stage.lists[l].commands)
      if (const auto *receive = std::get_if<RecvCommand>(&command.body))
        listOf[receive->transfer] = static_cast<int32_t>(l);

  ExchangeOrder order;
  for (size_t i = 0; i < messages.size(); ++i) {
    auto entry = static_cast<int32_t>(i / 2);
    if (!messages[i].empty()) {
      ExchangeGroup &group = order.emplace_back();
      group.action = entry;
      for (const Operation &message : messages[i])
        if (message.kind == Operation::Kind::Send)
          group.exchanges.push_back({entry - 1, sends.at(message.number)});
        else
          group.exchanges.push_back(
              {entries.at({listOf.at(message.number), message.microBatch}),
               receives.at(message.number)});
    }
    // Both groups of the messages stand before the entry.
    if (i % 2 == 0 || i / 2 == stage.schedule.size())
      continue;
    const CommandList &list =
        stage.lists[static_cast<size_t>(stage.schedule[i / 2].list)];
    for (size_t c = 0; c < list.commands.size(); ++c)
      if (std::holds_alternative<CollectiveCommand>(list.commands[c].body))
        order.push_back({entry, true, {{entry, static_cast<int32_t>(c)}}});
  }
  return order;
}

std::string Orderer::describe(const exchange::Deadlock &deadlock,
                              const exchange::Network &network) const {
  auto stageOf = [&](int32_t number) -> const StageProgram & {
    return program.stages[static_cast<size_t>(number)];
  };
  return exchange::describe(
      deadlock, network,
      [&](int32_t stage) {
        return "stage " + std::to_string(stage) + " (" +
               exchange::describeRanks(stageOf(stage).ranks) + ")";
      },
      [&](int32_t number, size_t group) -> std::string {
        const StageProgram &stage = stageOf(number);
        if (group / 2 == stage.schedule.size())
          return "";
        const Action &action = stage.schedule[group / 2];
        const std::string &list =
            stage.lists[static_cast<size_t>(action.list)].name;
        return "before '" + (list.empty() ? stage.name : list) +
               "' of micro-batch " + std::to_string(action.microBatch);
      });
}

llvm::Expected<std::vector<ExchangeOrder>> Orderer::run() {
  exchange::Network network;
  for (const Transfer &transfer : program.transfers)
    network.transfers.push_back(
        {transfer.name, transfer.fromStage, transfer.toStage, transfer.slots});
  std::vector<std::vector<exchange::Action>> actions;
  for (const StageProgram &stage : program.stages)
    actions.push_back(actionsOf(stage));
  // Ranks of a stage do the same, and its collectives are theirs alone: they
  // meet wherever the stage as a whole goes on.
  exchange::Grouping grouping =
      exchange::groupMessages(network.transfers, actions);
  if (grouping.deadlock)
    return makeError(ExitCode::BadPlan,
                     "program '" + program.name + "' never ends: " +
                         describe(*grouping.deadlock, network));
  std::vector<ExchangeOrder> orders;
  for (size_t s = 0; s < program.stages.size(); ++s)
    orders.push_back(orderOf(program.stages[s], grouping.orders[s]));
  return orders;
}

llvm::Expected<std::vector<ExchangeOrder>>
orderExchanges(const Program &program) {
  return Orderer(program).run();
}

} // namespace ax::rt
