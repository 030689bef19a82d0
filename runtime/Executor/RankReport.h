//===- RankReport.h - What a rank tells of itself ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_RANKREPORT_H
#define AX_RUNTIME_RANKREPORT_H

#include "Trace.h"

namespace ax::rt {

struct RankReport {
  RankTrace trace;
  RankMemory memory;
};

/// Returns at process 0 what all processes give of their ranks, in the order of
/// the ranks, and nothing at others. Times are by process 0's clock: of other
/// hosts' clocks it is known to within what a message takes.
llvm::Expected<std::vector<RankReport>>
gatherRankReports(World &world, const Program &program,
                  llvm::ArrayRef<RankReport> mine);

} // namespace ax::rt

#endif // AX_RUNTIME_RANKREPORT_H
