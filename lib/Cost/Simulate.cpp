//===- Simulate.cpp - Running a schedule without running it ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Cost/Simulate.h"

#include "ax/Exchange/Order.h"

#include <algorithm>

namespace ax::cost {

namespace {

/// Values of one transfer, in the order sent.
struct Channel {
  struct Value {
    int64_t microBatch;
    double arrives;
    /// When its slot is free again; negative before it is read.
    double released = -1;
  };
  std::vector<Value> sent;
  /// Values are read in the order sent; those before this one were.
  size_t read = 0;
};

class Simulator {
public:
  Simulator(const std::vector<SimulatedStage> &stages,
            const std::vector<SimulatedTransfer> &transfers)
      : stages(stages), transfers(transfers), channels(transfers.size()),
        next(stages.size()), clock(stages.size()) {}

  Simulation run() {
    Simulation result;
    result.busy.resize(stages.size());
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t s = 0; s < stages.size(); ++s)
        while (step(s)) {
          moved = true;
          result.busy[s] +=
              stages[s].seconds[stages[s].order[next[s] - 1].list];
        }
    }
    for (size_t s = 0; s < stages.size(); ++s) {
      result.seconds = std::max(result.seconds, clock[s]);
      if (next[s] < stages[s].order.size())
        result.stuck.push_back("stage " + std::to_string(s) + " at " +
                               stages[s].order[next[s]].name + " waits for " +
                               waitsFor(s));
    }
    return result;
  }

private:
  /// The value to be read next on channel `c`; null when it is not that of
  /// `microBatch` or has not been sent.
  Channel::Value *incoming(size_t c, int64_t microBatch) {
    Channel &channel = channels[c];
    if (channel.read == channel.sent.size() ||
        channel.sent[channel.read].microBatch != microBatch)
      return nullptr;
    return &channel.sent[channel.read];
  }

  /// Whether a value can be sent on channel `c`, and from when on.
  bool canSend(size_t c, double &from) const {
    const std::vector<Channel::Value> &sent = channels[c].sent;
    size_t slots = static_cast<size_t>(transfers[c].slots);
    if (sent.size() < slots)
      return true;
    double released = sent[sent.size() - slots].released;
    from = std::max(from, released);
    return released >= 0;
  }

  bool receives(size_t c, size_t s, const SimulatedAction &action) const {
    return transfers[c].to == static_cast<int64_t>(s) &&
           transfers[c].toList == action.list;
  }
  bool sends(size_t c, size_t s, const SimulatedAction &action) const {
    return transfers[c].from == static_cast<int64_t>(s) &&
           transfers[c].fromList == action.list;
  }

  /// One action of stage `s`; false when it has to wait or is done.
  bool step(size_t s) {
    if (next[s] == stages[s].order.size())
      return false;
    const SimulatedAction &action = stages[s].order[next[s]];
    int64_t microBatch = action.microBatch;
    double start = clock[s];
    for (size_t c = 0; c < transfers.size(); ++c)
      if (receives(c, s, action)) {
        Channel::Value *value = incoming(c, microBatch);
        if (!value)
          return false;
        start = std::max(start, value->arrives);
      }
    double end = start + stages[s].seconds[action.list];
    for (size_t c = 0; c < transfers.size(); ++c)
      if (sends(c, s, action) && !canSend(c, end))
        return false;
    for (size_t c = 0; c < transfers.size(); ++c) {
      if (receives(c, s, action)) {
        incoming(c, microBatch)->released = end;
        ++channels[c].read;
      }
      if (sends(c, s, action))
        channels[c].sent.push_back({microBatch, end + transfers[c].seconds});
    }
    clock[s] = end;
    ++next[s];
    return true;
  }

  std::string waitsFor(size_t s) {
    const SimulatedAction &action = stages[s].order[next[s]];
    int64_t microBatch = action.microBatch;
    double unused = 0;
    for (size_t c = 0; c < transfers.size(); ++c)
      if (receives(c, s, action) && !incoming(c, microBatch))
        return "micro-batch " + std::to_string(microBatch) + " of stage " +
               std::to_string(transfers[c].from);
    for (size_t c = 0; c < transfers.size(); ++c)
      if (sends(c, s, action) && !canSend(c, unused))
        return "a free one of the " + std::to_string(transfers[c].slots) +
               " slots of stage " + std::to_string(transfers[c].to);
    return "nothing";
  }

  const std::vector<SimulatedStage> &stages;
  const std::vector<SimulatedTransfer> &transfers;
  std::vector<Channel> channels;
  std::vector<size_t> next;
  std::vector<double> clock;
};

/// Which stages wait for each other, if they exchange one at a time.
std::string findDeadlock(const std::vector<SimulatedStage> &stages,
                         const std::vector<SimulatedTransfer> &transfers) {
  exchange::Network network;
  for (const SimulatedTransfer &transfer : transfers)
    network.transfers.push_back(
        {transfer.name, static_cast<int32_t>(transfer.from),
         static_cast<int32_t>(transfer.to), transfer.slots});
  std::vector<std::vector<exchange::Action>> actions(stages.size());
  for (size_t s = 0; s < stages.size(); ++s) {
    // By lists.
    std::vector<exchange::Action> does(stages[s].seconds.size());
    for (size_t t = 0; t < transfers.size(); ++t) {
      if (transfers[t].from == static_cast<int64_t>(s))
        does[transfers[t].fromList].sends.push_back(static_cast<int32_t>(t));
      if (transfers[t].to == static_cast<int64_t>(s))
        does[transfers[t].toList].receives.push_back(static_cast<int32_t>(t));
    }
    for (const SimulatedAction &action : stages[s].order) {
      actions[s].push_back(does[action.list]);
      actions[s].back().microBatch = static_cast<int32_t>(action.microBatch);
    }
  }
  exchange::Grouping grouping =
      exchange::groupMessages(network.transfers, actions);
  if (!grouping.deadlock)
    return "";
  return exchange::describe(
      *grouping.deadlock, network,
      [&](int32_t stage) {
        const std::string &ranks = stages[stage].ranks;
        return "stage " + std::to_string(stage) +
               (ranks.empty() ? "" : " (" + ranks + ")");
      },
      [&](int32_t stage, size_t group) {
        const std::vector<SimulatedAction> &order = stages[stage].order;
        size_t action = group / 2;
        return action < order.size() ? "before " + order[action].name
                                     : std::string();
      });
}

} // namespace

Simulation simulate(const std::vector<SimulatedStage> &stages,
                    const std::vector<SimulatedTransfer> &transfers) {
  Simulation result = Simulator(stages, transfers).run();
  result.deadlock = findDeadlock(stages, transfers);
  return result;
}

} // namespace ax::cost
