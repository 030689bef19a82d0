//===- Interleaved.cpp - 1F1B of several parts on each coordinate ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Narayanan et al., arXiv 2104.04473: a bubble 1 / V as large, for V times as
// many transfers.
//
//===----------------------------------------------------------------------===//
#include "../GreedySchedule.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>

namespace ax::cost {

namespace {

class Interleaved : public GreedySchedule {
  llvm::StringRef name() const final { return "interleaved"; }
  std::pair<int64_t, int64_t> parts() const final { return {2, 1024}; }
  std::string findFault(const Pipeline &pipeline) const final {
    if (pipeline.microBatches % pipeline.coordinates == 0)
      return "";
    return llvm::formatv("takes micro-batches in groups of --pp={0}, which {1} "
                         "are no multiple of",
                         pipeline.coordinates, pipeline.microBatches);
  }
  int64_t liveBound(const Pipeline &pipeline, int64_t coordinate) const final {
    int64_t behind = pipeline.coordinates - coordinate - 1;
    return std::min(pipeline.microBatches * pipeline.parts,
                    2 * behind + (pipeline.parts - 1) * pipeline.coordinates +
                        1);
  }
};

} // namespace

// Declared where the build's list of them is called.
// NOLINTNEXTLINE(misc-use-internal-linkage)
void addInterleaved(PipelineSchedules &schedules) {
  schedules.add(std::make_unique<Interleaved>());
}

} // namespace ax::cost
