//===- JobGuard.h - What ends a process that does not -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_SESSION_JOBGUARD_H
#define AX_LIB_SESSION_JOBGUARD_H

#include "ax/Session/Job.h"

#include "llvm/Support/Error.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <optional>
#include <thread>

namespace ax {

/// Waits beside the threads that work, until its end:
/// - When the job ends because of another process, this one has some time to
///   notice, and is then ended.
/// - SIGTERM, which launchers send to all when one has died, ends the process a
///   moment later, so that it is heard why; but where somebody else takes the
///   signal.
/// - The end of the process that has started this one ends it at once.
///
/// There is one of a process at a time.
class JobGuard {
public:
  /// Called from the guard's thread with why, if that is known, and the exit
  /// code.
  using End = std::function<void(const std::string &reason, int code)>;

  /// A RunFailed error where the system has no thread or file for it.
  static llvm::Expected<std::unique_ptr<JobGuard>> create(rt::World &world,
                                                          End end);
  ~JobGuard();

  /// From now on the process ends by itself.
  void letEnd() { isEnding.store(true); }
  /// The guard has to be gone within `time`, or ends the process with this
  /// reason.
  void setLimit(std::chrono::milliseconds time, std::string reason);
  /// Whether SIGTERM has come.
  bool wasTerminated() const { return isTerminated.load(); }

private:
  using Clock = std::chrono::steady_clock;

  JobGuard(rt::World &world, End end) : world(world), end(std::move(end)) {}
  void watch();
  static unsigned waitForCalls(std::optional<Clock::time_point> last);
  bool endsWithin(std::chrono::milliseconds time) const;

  rt::World &world;
  End end;
  std::atomic<bool> isEnding{false}, isTerminated{false};
  /// Set before a call says so, which the thread reads.
  Clock::time_point limit;
  std::string limitReason;
  struct sigaction before = {};
  std::thread thread;
};

} // namespace ax

#endif // AX_LIB_SESSION_JOBGUARD_H
