//===- OneForwardOneBackward.cpp - Backward as soon as can be -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Narayanan et al. (PipeDream), SOSP 2019, with one update a step: a coordinate
// begins as many micro-batches as there are coordinates from it to the last,
// and then one for each that it has ended.
//
//===----------------------------------------------------------------------===//
#include "../GreedySchedule.h"

#include <algorithm>

namespace ax::cost {

namespace {

class OneForwardOneBackward : public GreedySchedule {
  llvm::StringRef name() const final { return "1f1b"; }
  int64_t liveBound(const Pipeline &pipeline, int64_t coordinate) const final {
    return std::min(pipeline.microBatches, pipeline.coordinates - coordinate);
  }
};

} // namespace

// Declared where the build's list of them is called.
// NOLINTNEXTLINE(misc-use-internal-linkage)
void addOneForwardOneBackward(PipelineSchedules &schedules) {
  schedules.add(std::make_unique<OneForwardOneBackward>());
}

} // namespace ax::cost
