//===- Trace.h - What each rank did when ------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_TRACE_H
#define AX_RUNTIME_TRACE_H

#include "StreamKind.h"

#include "ax/Runtime/Executor.h"

namespace ax::rt {

using Clock = std::chrono::steady_clock;

/// What a stream did of one executed command of a rank. Of each execution the
/// computing stream has one event, before those of a collective: of an exchange
/// that another stream does it is how long computing waits for that. Where the
/// device is the host itself, all is on that stream.
struct TraceEvent {
  /// In place of a command: a micro-batch's inputs go up, or its outputs come
  /// down.
  static constexpr int32_t ports = -1;

  /// The number among all of the stage. What ends an exchange counts as of the
  /// command that began it.
  int32_t command = 0;
  int32_t microBatch = 0;
  Clock::time_point begin, end;
  StreamKind stream = StreamKind::Compute;
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
