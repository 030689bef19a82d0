//===- ZeroBubble.cpp - Gradients of weights where nobody waits -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Qi et al., arXiv 2401.10241 (ZB-H1): 1F1B whose coordinates do not wait for
// gradients of weights of others; a coordinate makes its own where it would
// wait.
//
//===----------------------------------------------------------------------===//
#include "../GreedySchedule.h"

#include <algorithm>

namespace ax::cost {

namespace {

class ZeroBubble : public GreedySchedule {
  llvm::StringRef name() const final { return "zero-bubble"; }
  bool splitsBackward() const final { return true; }
  int64_t liveBound(const Pipeline &pipeline, int64_t coordinate) const final {
    return std::min(pipeline.microBatches, pipeline.coordinates - coordinate);
  }
};

} // namespace

// Declared where the build's list of them is called.
// NOLINTNEXTLINE(misc-use-internal-linkage)
void addZeroBubble(PipelineSchedules &schedules) {
  schedules.add(std::make_unique<ZeroBubble>());
}

} // namespace ax::cost
