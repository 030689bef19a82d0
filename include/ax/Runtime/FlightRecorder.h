//===- FlightRecorder.h - What each rank did last ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The last exchanges of each rank of this process, and what it does now: kept
// while ranks run, and written for who looks for a rank that hangs or is gone
// (tools/ax-analyze-flight). docs/reliability.md has the format of the files.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_FLIGHTRECORDER_H
#define AX_RUNTIME_FLIGHTRECORDER_H

#include "ax/Runtime/World.h"

#include <map>
#include <mutex>

namespace ax::rt {

class FlightLog;

/// One for a process, whose executors all tell it. Any thread may call it.
class FlightRecorder {
public:
  /// Makes the folder; an InputOutput error where it, or a file in it, cannot
  /// be made.
  static llvm::Expected<std::shared_ptr<FlightRecorder>>
  create(const std::string &folder);
  ~FlightRecorder();

  /// Before the first rank of an executor is there. All processes of a world
  /// make the call: records of one run are known by a name that they share.
  llvm::Error join(World &world, int64_t numRanks);
  /// The log of a rank of this process, the same for all executors.
  FlightLog &openLog(int32_t rank);

  /// Said several times a second by a thread that does little else, so that it
  /// is known when the process was stopped; not while `endTicks` was the last.
  void tick();
  void endTicks();

  /// Keeps what the logs have now, as it was at a failure, and returns soon.
  /// False, and nothing else, where there was a failure before.
  bool keep(const std::string &reason);
  /// Writes what was kept, once, and returns, for the end of the failure's
  /// message, where it is or why it is not; empty where nothing was kept.
  std::string write();
  /// Writes what the logs have now; nothing after a failure.
  llvm::Error writeNow(const std::string &reason);

private:
  struct Kept;
  explicit FlightRecorder(std::string folder);
  Kept take(std::string reason, bool isFailure);
  void noteTick(int64_t now);
  llvm::Error writeFiles(const Kept &kept) const;

  std::string folder;
  /// Guards what follows.
  std::mutex mutex;
  std::map<int32_t, std::unique_ptr<FlightLog>> logs;
  ProcessPlace place;
  int64_t numRanks = 0;
  /// Of the run.
  std::string run;
  std::unique_ptr<Kept> kept;
  /// Steady times, in nanoseconds; 0: none. When it was last said, how long the
  /// process was stopped, and until when.
  int64_t lastTick = 0, stopped = 0, stoppedUntil = 0;

  /// Held while files are written; guards `written`.
  std::mutex writing;
  std::string written;
};

} // namespace ax::rt

#endif // AX_RUNTIME_FLIGHTRECORDER_H
