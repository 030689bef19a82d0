//===- GPipe.cpp - All forward passes, then all backward passes -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Huang et al., arXiv 1811.06965.
//
//===----------------------------------------------------------------------===//
#include "../GreedySchedule.h"

namespace ax::cost {

namespace {

class GPipe : public GreedySchedule {
  llvm::StringRef name() const final { return "gpipe"; }
  bool prefersForward() const final { return true; }
  int64_t liveBound(const Pipeline &pipeline, int64_t) const final {
    return pipeline.microBatches * pipeline.parts;
  }
};

} // namespace

// Declared where the build's list of them is called.
// NOLINTNEXTLINE(misc-use-internal-linkage)
void addGPipe(PipelineSchedules &schedules) {
  schedules.add(std::make_unique<GPipe>());
}

} // namespace ax::cost
