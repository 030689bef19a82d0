//===- GreedySchedule.h - Whatever can be done first ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_COST_GREEDYSCHEDULE_H
#define AX_COST_GREEDYSCHEDULE_H

#include "ax/Cost/Schedule.h"

namespace ax::cost {

/// Made by playing it: the coordinate that is free first goes on with what it
/// prefers of the actions that are ready then. It takes forward actions in one
/// order, backward actions in one order, and begins no forward action while as
/// many are alive as `liveBound` lets it. Schedules differ in that bound, in
/// what is preferred and in how many parts there are; coordinates have stages
/// in turn.
class GreedySchedule : public PipelineSchedule {
public:
  std::vector<ActionOrder> orders(const Pipeline &pipeline) const final;

  /// What may be alive, whatever takes how long.
  int64_t slots(const Pipeline &pipeline, int64_t coordinate, ActionKind,
                const ActionOrder &) const final {
    return liveBound(pipeline, coordinate);
  }

  /// Whether a forward action is done before a backward one that is ready, too.
  virtual bool prefersForward() const { return false; }
};

} // namespace ax::cost

#endif // AX_COST_GREEDYSCHEDULE_H
