//===- Watchdog.cpp - Notices when no rank gets on ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Watchdog.h"

#include <algorithm>

namespace ax::rt {

/// In milliseconds: how long it may take until something is noticed.
constexpr int64_t longest = 200;

Watchdog::Watchdog(const std::vector<std::unique_ptr<LocalRank>> &ranks,
                   std::chrono::milliseconds timeout, bool all)
    : ranks(ranks), all(all),
      interval(timeout.count() > 0
                   ? std::clamp<int64_t>(timeout.count() / 8, 1, longest)
                   : longest),
      limit(timeout.count() > 0 ? static_cast<uint64_t>(timeout / interval + 4)
                                : 0) {}

const RankExecutor *Watchdog::findStuck() {
  if (limit == 0)
    return nullptr;
  uint64_t count = 0;
  const RankExecutor *stuck = nullptr;
  for (const std::unique_ptr<LocalRank> &rank : ranks) {
    const RankExecutor &executor = rank->executor;
    count += executor.getNumBegun();
    if (executor.isIdle() || (!all && executor.isWaiting()))
      continue;
    if (!stuck || (stuck->isWaiting() && !executor.isWaiting()))
      stuck = &executor;
  }
  if (!stuck || count != lastCount) {
    lastCount = count;
    rounds = 0;
    return nullptr;
  }
  return ++rounds < limit ? nullptr : stuck;
}

} // namespace ax::rt
