//===- CommandTimes.cpp - Where the time went -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Trace.h"
#include "ax/Runtime/DeviceRates.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

#include <algorithm>

namespace ax::rt {

namespace {

/// How long one rank's executions of a command took, in order.
using Durations = std::vector<Clock::duration>;

class CommandTimes {
public:
  /// `ranks`: how many of each stage there are traces of.
  CommandTimes(const Program &program, llvm::ArrayRef<int64_t> ranks)
      : program(program) {
    for (size_t s = 0; s < program.stages.size(); ++s)
      addStage(static_cast<int32_t>(s), ranks[s]);
  }

  void add(const RankTrace &trace);
  std::vector<CommandTime> take();

private:
  void addStage(int32_t number, int64_t ranks);
  void addWaiting(CommandTime &time, const GroupSet &groups,
                  const std::vector<Durations> &byRank);

  const Program &program;
  std::vector<CommandTime> times;
  /// Where the commands of each stage begin among all.
  std::vector<size_t> first;
  /// Which command began the collective that a command waits for, else the
  /// command itself.
  std::vector<size_t> begunBy;
  /// Who does a command together, where a group of ranks does; and how long
  /// each rank took.
  std::vector<const GroupSet *> groups;
  std::vector<std::vector<Durations>> durations;
};

} // namespace

void CommandTimes::addStage(int32_t number, int64_t ranks) {
  const StageProgram &stage = program.stages[static_cast<size_t>(number)];
  first.push_back(times.size());
  if (ranks == 0)
    return;
  for (const CommandList &list : stage.lists) {
    // The group, and the kind, of each request.
    std::vector<int32_t> groupOf;
    std::vector<std::string> kindOf;
    std::vector<size_t> begun;
    for (const Command &command : list.commands) {
      CommandTime time;
      time.stage = number;
      time.name = command.name;
      time.what = describe(program, stage, command);
      time.kind = llvm::StringRef(time.what).split(' ').first.str();
      time.nodes = command.nodes;
      time.bytes = command.bytes;
      time.ranks = ranks;
      const GroupSet *together = nullptr;
      begunBy.push_back(times.size());
      if (const auto *library = std::get_if<LibraryCommand>(&command.body)) {
        time.flops = countFlops(library->desc);
        time.factors = rateType(library->desc);
      } else if (const auto *collective =
                     std::get_if<CollectiveCommand>(&command.body)) {
        together = &stage.groups[static_cast<size_t>(collective->groupSet)];
        auto request = static_cast<size_t>(collective->request + 1);
        groupOf.resize(std::max(groupOf.size(), request));
        kindOf.resize(groupOf.size());
        begun.resize(groupOf.size());
        if (request) {
          begun[request - 1] = times.size();
          groupOf[request - 1] = collective->groupSet;
          kindOf[request - 1] = time.kind;
        }
      } else if (const auto *wait = std::get_if<WaitCommand>(&command.body)) {
        together = &stage.groups[static_cast<size_t>(
            groupOf[static_cast<size_t>(wait->request)])];
        time.kind = kindOf[static_cast<size_t>(wait->request)];
        begunBy.back() = begun[static_cast<size_t>(wait->request)];
      }
      time.isExchange = together ||
                        std::holds_alternative<SendCommand>(command.body) ||
                        std::holds_alternative<RecvCommand>(command.body);
      times.push_back(std::move(time));
      groups.push_back(together);
      durations.emplace_back();
      if (together)
        durations.back().resize(static_cast<size_t>(program.mesh.numRanks()));
    }
  }
}

void CommandTimes::add(const RankTrace &trace) {
  const StageProgram &stage = program.stages[static_cast<size_t>(trace.stage)];
  const std::vector<const Command *> commands = stage.allCommands();
  bool isBeside = llvm::any_of(trace.events, [](const TraceEvent &event) {
    return event.stream != StreamKind::Compute;
  });
  for (const TraceEvent &event : trace.events) {
    if (event.command == TraceEvent::ports)
      continue;
    auto inStage = static_cast<size_t>(event.command);
    size_t number = first[static_cast<size_t>(trace.stage)] + inStage;
    CommandTime &time = times[number];
    Clock::duration took = event.end - event.begin;
    if (event.stream == StreamKind::Compute) {
      ++time.executions;
      times[isBeside ? begunBy[number] : number].held += took;
      if (isBeside && time.isExchange)
        took = Clock::duration(0);
    }
    time.total += took;
    if (groups[number]) {
      // One execution has an event of its beginning, and one of its end.
      auto &ofRank = durations[number][static_cast<size_t>(trace.rank)];
      if (event.stream == StreamKind::Compute)
        ofRank.push_back(took);
      else if (!ofRank.empty())
        ofRank.back() += took;
    } else if (std::holds_alternative<RecvCommand>(commands[inStage]->body)) {
      time.waiting += took;
    }
  }
}

/// The last rank to come to an exchange waits for nobody: what it needs is what
/// the exchange takes.
void CommandTimes::addWaiting(CommandTime &time, const GroupSet &groupSet,
                              const std::vector<Durations> &byRank) {
  for (const std::vector<int32_t> &group : groupSet.groups) {
    size_t count = byRank[static_cast<size_t>(group.front())].size();
    for (int32_t rank : group)
      count = std::min(count, byRank[static_cast<size_t>(rank)].size());
    for (size_t i = 0; i < count; ++i) {
      Clock::duration least = Clock::duration::max(), sum{0};
      for (int32_t rank : group) {
        Clock::duration took = byRank[static_cast<size_t>(rank)][i];
        least = std::min(least, took);
        sum += took;
      }
      time.waiting += sum - least * static_cast<int64_t>(group.size());
    }
  }
}

std::vector<CommandTime> CommandTimes::take() {
  for (size_t i = 0; i < times.size(); ++i)
    if (groups[i])
      addWaiting(times[i], *groups[i], durations[i]);
  return std::move(times);
}

std::vector<CommandTime>
sumCommandTimes(const Program &program,
                const std::vector<const RankTrace *> &traces) {
  std::vector<int64_t> ranks(program.stages.size());
  for (const RankTrace *trace : traces)
    ++ranks[static_cast<size_t>(trace->stage)];
  CommandTimes times(program, ranks);
  for (const RankTrace *trace : traces)
    times.add(*trace);
  return times.take();
}

} // namespace ax::rt
