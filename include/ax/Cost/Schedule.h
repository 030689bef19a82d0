//===- Schedule.h - Orders of a pipeline's actions --------------*- C++ -*-===//
//
// One scheduler: every coordinate takes its forward actions in one order, its
// backward actions in one order, and at each moment what it prefers of those
// that are ready. Schedules differ in these orders, in what is preferred, and
// in how many micro-batches' activations may live at a time.
//
// GPipe: Huang et al., arXiv 1811.06965. 1F1B: Narayanan et al. (PipeDream),
// SOSP 2019. Interleaved: Narayanan et al., arXiv 2104.04473. Zero bubble: Qi
// et al., arXiv 2401.10241 (ZB-H1).
//
//===----------------------------------------------------------------------===//
#ifndef AX_COST_SCHEDULE_H
#define AX_COST_SCHEDULE_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ax::cost {

enum class SchedulePolicy {
  GPipe,
  OneForwardOneBackward,
  Interleaved,
  ZeroBubble
};

/// `gpipe`, `1f1b`, `interleaved`, `zero-bubble`.
std::optional<SchedulePolicy> parsePolicy(std::string_view name);
std::string_view toString(SchedulePolicy policy);

/// Stage `part * coordinates + coordinate` is part `part` of a coordinate.
struct Pipeline {
  int64_t coordinates = 1, parts = 1, microBatches = 1;
  /// Of the parts' actions; 0: there is none.
  double forward = 1, backward = 2, weights = 0;
};

struct PipelineAction {
  /// F, B or W.
  char letter = 'F';
  int64_t part = 0, microBatch = 0;
};

/// Of how many (part, micro-batch) pairs activations may be alive on a
/// coordinate at a time: those whose forward action began and whose backward
/// (or weights') action has not ended.
int64_t liveBound(const Pipeline &pipeline, SchedulePolicy policy,
                  int64_t coordinate);

/// For each coordinate its actions in order.
std::vector<std::vector<PipelineAction>> makeSchedule(const Pipeline &pipeline,
                                                      SchedulePolicy policy);

} // namespace ax::cost

#endif // AX_COST_SCHEDULE_H
