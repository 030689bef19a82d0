//===- Supervisor.h - One command at a time, and its processes --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_AXLAUNCH_SUPERVISOR_H
#define AX_TOOLS_AXLAUNCH_SUPERVISOR_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <chrono>
#include <csignal>
#include <string>
#include <sys/types.h>

namespace ax {

/// Runs commands such that none of their processes on this host is left behind:
/// what a command leaves is ended with it, and when this process dies, the
/// command gets SIGTERM, with which mpirun ends its ranks on all hosts.
///
/// SIGINT, SIGTERM and SIGUSR1 ask the command to end. There is one supervisor
/// in a process, of its first thread, and it is there until the end: signals
/// stay blocked.
class Supervisor {
public:
  /// `grace` is what processes have to end after SIGTERM, before SIGKILL.
  explicit Supervisor(std::chrono::seconds grace);

  /// Returns the command's exit code, or 128 and the signal that ended it, as
  /// shells do. RunFailed when a launcher does not end after its last rank on
  /// this host has, and so is ended. `handOn` is the signal that asks it to
  /// save and end. An
  /// InputOutput error when it cannot be started.
  llvm::Expected<int> run(llvm::ArrayRef<std::string> words, int handOn);

  /// The first signal that asked for the end; 0: none did. No command is to be
  /// run any more, then.
  int getStopSignal() const { return stopSignal; }

private:
  llvm::Error start(llvm::ArrayRef<std::string> words);
  int waitFor(int handOn);
  void endAll();
  /// What a launcher has to end after its last rank of this host has: mpirun
  /// takes `grace` twice.
  std::chrono::seconds patience() const {
    return 2 * grace + std::chrono::seconds(10);
  }
  void reap();

  std::chrono::seconds grace;
  sigset_t watched, before;
  /// The command; 0: it has ended.
  pid_t child = 0;
  /// Of waitpid; valid when it has ended.
  int status = 0;
  int stopSignal = 0;
};

} // namespace ax

#endif // AX_TOOLS_AXLAUNCH_SUPERVISOR_H
