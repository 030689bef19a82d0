//===- Watchdog.h - Notices when no rank gets on ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_WATCHDOG_H
#define AX_RUNTIME_WATCHDOG_H

#include "RankThreads.h"

namespace ax::rt {

/// Looks at the ranks from time to time. As long as any of them finishes
/// commands, the others may wait: for a stage before them, or for a core.
class Watchdog {
public:
  /// Where these are not `all` ranks, one may wait for those of other
  /// processes, whose own see to them. `timeout`: 0 for ever.
  Watchdog(const std::vector<std::unique_ptr<LocalRank>> &ranks,
           std::chrono::milliseconds timeout, bool all);

  /// How often to look.
  std::chrono::milliseconds getInterval() const { return interval; }

  /// When nothing has happened for the timeout, the rank at fault as far as can
  /// be seen: one that does not itself wait for others. Else null.
  const RankExecutor *findStuck();

private:
  const std::vector<std::unique_ptr<LocalRank>> &ranks;
  bool all;
  std::chrono::milliseconds interval;
  /// Rounds without progress; a process that was stopped has none.
  uint64_t rounds = 0, limit;
  uint64_t lastCount = 0;
};

} // namespace ax::rt

#endif // AX_RUNTIME_WATCHDOG_H
