//===- JobGuard.h - What ends a process that does not -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_SESSION_JOBGUARD_H
#define AX_LIB_SESSION_JOBGUARD_H

#include "ax/Session/Job.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <thread>

namespace ax {

/// Waits beside the threads that work, until its end:
/// - When the job ends because of another process, this one has some time to
///   notice, and is then ended.
/// - SIGTERM, which launchers send to all when one has died, ends the process a
///   moment later, so that it is heard why; but where somebody else takes the
///   signal.
/// - The end of the process that has started this one ends it at once.
class Job::Guard {
public:
  /// `end` is called from the guard's thread with why, if that is known, and
  /// the exit code.
  Guard(rt::World &world,
        std::function<void(const std::string &reason, int code)> end);
  ~Guard();

  /// From now on the process ends by itself.
  void letEnd() { isEnding.store(true); }
  /// Whether SIGTERM has come.
  bool wasTerminated() const { return isTerminated.load(); }

private:
  void watch();
  bool endsWithin(std::chrono::milliseconds time) const;

  rt::World &world;
  std::function<void(const std::string &, int)> end;
  std::atomic<bool> isEnding{false}, isTerminated{false};
  struct sigaction before;
  std::thread thread;
};

} // namespace ax

#endif // AX_LIB_SESSION_JOBGUARD_H
