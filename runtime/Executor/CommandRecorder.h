//===- CommandRecorder.h - When a rank's device does commands ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_COMMANDRECORDER_H
#define AX_RUNTIME_COMMANDRECORDER_H

#include "Trace.h"
#include "ax/Runtime/Device.h"

namespace ax::rt {

/// Records the commands of one run after another, by timed events on the
/// streams that do them.
class CommandRecorder {
public:
  explicit CommandRecorder(Device &device) : device(device) {}

  /// `stream` is done with everything.
  llvm::Error beginRun(Stream &stream);
  llvm::Error begin(Stream &stream, int32_t command, int32_t microBatch);
  /// The newest command that began.
  llvm::Error end(Stream &stream);
  /// Adds what was recorded since beginRun. All streams are done.
  llvm::Error finishRun(RankTrace &trace);

private:
  struct Recorded {
    int32_t command = 0, microBatch = 0;
    std::unique_ptr<Event> begin, end;
  };
  llvm::Error create(std::unique_ptr<Event> &event);

  Device &device;
  /// What the others are timed by, and when it was.
  std::unique_ptr<Event> origin;
  Clock::time_point originTime;
  /// The first `count` are of this run.
  std::vector<Recorded> recorded;
  size_t count = 0;
};

} // namespace ax::rt

#endif // AX_RUNTIME_COMMANDRECORDER_H
