//===- Simulate.h - Running a schedule without running it -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stages take their actions in order. An action receives what the stage needs,
// computes, and sends; a receive waits for its send. Ranks may do so in two
// ways: they receive ahead, into all slots that are free, or they exchange one
// at a time (ax/Exchange/Order.h). Waiting never undoes anything, so whether a
// schedule ends does not depend on timing: every deadlock of both is found.
// Whatever ends in the first way does in the second. The reverse is not so: of
// several values that an action sends, a group lets each go when it can, but
// ranks that receive ahead send one after another, and an order that goes by
// luck is none: all have to have free slots.
//
//===----------------------------------------------------------------------===//
#ifndef AX_COST_SIMULATE_H
#define AX_COST_SIMULATE_H

#include <cstdint>
#include <string>
#include <vector>

namespace ax::cost {

/// One entry of a schedule: a list of the stage, for one micro-batch.
struct SimulatedAction {
  int64_t microBatch = 0;
  int64_t list = 0;
  /// The action as schedules write it, for messages.
  std::string name;
};

struct SimulatedStage {
  /// How long each of its lists takes.
  std::vector<double> seconds;
  std::vector<SimulatedAction> order;
  /// Its ranks, for messages; may be empty.
  std::string ranks = {};
};

/// A value that one list of `from` sends whenever it runs, and one of `to`
/// receives. Slots are used round robin: the n-th value sent goes to slot n mod
/// slots, which must have been read before.
struct SimulatedTransfer {
  int64_t from = 0, to = 0, slots = 1;
  double seconds = 0;
  int64_t fromList = 0, toList = 0;
  /// For messages.
  std::string name = {};
};

struct Simulation {
  /// When the last stage is done, if it receives ahead; of the part that ran,
  /// where one never is.
  double seconds = 0;
  /// Time that each stage computes.
  std::vector<double> busy;
  /// What each stage waits for that never ends, if it receives ahead; empty
  /// when all end.
  std::vector<std::string> stuck;
  /// Which stages wait for each other for ever, if they exchange one at a time;
  /// empty when all end.
  std::string deadlock;
};

/// Of each transfer, the lists at both ends are done for the same
/// micro-batches.
Simulation simulate(const std::vector<SimulatedStage> &stages,
                    const std::vector<SimulatedTransfer> &transfers);

} // namespace ax::cost

#endif // AX_COST_SIMULATE_H
