//===- Trace.h - What each rank did when ------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_TRACE_H
#define AX_RUNTIME_TRACE_H

#include "ax/Runtime/Executor.h"

namespace ax::rt {

using Clock = std::chrono::steady_clock;

/// One executed command of a rank, by its number in all of its stage.
struct TraceEvent {
  int32_t command = 0;
  int32_t microBatch = 0;
  Clock::time_point begin, end;
};

struct RankTrace {
  int32_t rank = 0;
  int32_t stage = 0;
  std::vector<TraceEvent> events;
};

/// See Executor::getCommandTimes.
std::vector<CommandTime>
sumCommandTimes(const Program &program,
                const std::vector<const RankTrace *> &traces);

/// See Executor::getBubble.
std::optional<double>
measureBubble(const Program &program,
              const std::vector<const RankTrace *> &traces);

llvm::Error writeChromeTrace(const std::string &path, const Program &program,
                             const std::vector<const RankTrace *> &traces);

} // namespace ax::rt

#endif // AX_RUNTIME_TRACE_H
