//===- Jobs.h - Jobs of several processes, for tests ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_UNIT_CONTROL_JOBS_H
#define AX_TEST_UNIT_CONTROL_JOBS_H

#include "ax/Runtime/Control.h"

#include <future>
#include <mutex>
#include <sys/types.h>

namespace ax::rt {

/// Options of a process of a test's job, which is on a host of its own name:
/// `host0`, `host1`, ... `broadcast` is missing.
ControlOptions makeOptions(int32_t process, int32_t numProcesses);

/// A launcher's broadcast between threads.
class ThreadBroadcast {
public:
  std::function<llvm::Expected<std::string>(std::string)> at(int32_t process);
  /// What process 0 gave.
  std::string get() { return future.get(); }

private:
  std::promise<std::string> promise;
  std::shared_future<std::string> future{promise.get_future()};
};

using Change = std::function<void(ControlOptions &)>;
using Body = std::function<std::string(World &)>;

/// Runs `body` in as many worlds, each in a thread that stands for a process.
/// Returns what it returned, or else the error with which joining failed.
std::vector<std::string> runThreads(int32_t numProcesses, const Body &body,
                                    const Change &change = nullptr);

/// Processes that signals can be sent to. The caller has no threads.
class Processes {
public:
  Processes(int32_t numProcesses, const Body &body,
            const Change &change = nullptr);
  /// Kills those that are left.
  ~Processes();

  void signal(int32_t process, int number) const;
  /// Returns what `body` returned, or an error, of a process that ends;
  /// "silence" where it does not within `time`.
  std::string wait(int32_t process, std::chrono::milliseconds time);
  /// Returns its exit status.
  int reap(int32_t process);

private:
  std::vector<pid_t> pids;
  std::vector<int> results;
};

/// Says `step 1`, `step 2`, ... in barriers until one fails, and returns why;
/// or `all steps` after `numSteps`.
std::string makeSteps(World &world, int numSteps);

/// Returns the message of an error.
std::string textOf(llvm::Error error);

} // namespace ax::rt

#endif // AX_TEST_UNIT_CONTROL_JOBS_H
