//===- Launch.h - Runs until one is done ------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_AXLAUNCH_LAUNCH_H
#define AX_TOOLS_AXLAUNCH_LAUNCH_H

#include "Options.h"

#include <optional>

namespace ax {

/// What follows a run.
enum class Next {
  /// Its exit code is the job's: it is done, was asked to end, or would fail
  /// again.
  End,
  Again,
  /// The next fallback, and then again.
  FewerRanks,
  /// Two runs in a row saved no step, and there are no fewer ranks to go to.
  GiveUpIdle,
  /// The last restart that was allowed.
  GiveUpOften,
};

/// Decides what follows each run of a job. Of a run that failed it is not known
/// whether a host is missing: what is known is that it saved nothing new. So
/// two in a row that saved none are what a fallback is taken for.
class Restarts {
public:
  Restarts(uint64_t most, size_t numFallbacks)
      : left(most), fallbacksLeft(numFallbacks) {}

  /// Returns what follows a run with this exit code (128 and a signal's number
  /// for an end by a signal). `hasSaved`: its newest checkpoint is another one
  /// than before it.
  Next after(int code, bool hasSaved);

private:
  uint64_t left;
  size_t fallbacksLeft;
  int idle = 0;
};

/// Runs the command, and again as long as Restarts says so, from the newest
/// checkpoint that a run of this job has saved; where there is none, as it was
/// given. Returns the exit code: the last run's, or what SIGINT or SIGTERM ask
/// for. A RunFailed error when it gives up.
llvm::Expected<int> launch(const LaunchOptions &options);

} // namespace ax

#endif // AX_TOOLS_AXLAUNCH_LAUNCH_H
