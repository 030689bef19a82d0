//===- Watchdog.cpp - Notices when no rank gets on ------------------------===//

#include "Watchdog.h"

#include <algorithm>

namespace ax::rt {

Watchdog::Watchdog(const std::vector<std::unique_ptr<RankRunner>> &runners,
                   std::chrono::milliseconds timeout)
    : runners(runners),
      interval(std::clamp<int64_t>(timeout.count() / 8, 1, 200)),
      limit(static_cast<uint64_t>(timeout / interval + 4)) {}

const RankRunner *Watchdog::findStuck() {
  uint64_t count = 0;
  const RankRunner *stuck = nullptr;
  for (const std::unique_ptr<RankRunner> &runner : runners) {
    count += runner->getNumExecuted();
    if (runner->isIdle())
      continue;
    if (!stuck || (stuck->isWaiting() && !runner->isWaiting()))
      stuck = runner.get();
  }
  if (!stuck || count != lastCount) {
    lastCount = count;
    rounds = 0;
    return nullptr;
  }
  return ++rounds < limit ? nullptr : stuck;
}

} // namespace ax::rt
