//===- CommandRecorder.h - When a rank's device does commands ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_COMMANDRECORDER_H
#define AX_RUNTIME_COMMANDRECORDER_H

#include "Trace.h"
#include "ax/Runtime/Communicator.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <array>

namespace ax::rt {

/// Records the commands of one run after another, by timed events on the
/// streams that do them. What a device does that is the host itself is on one
/// stream only.
class CommandRecorder {
public:
  explicit CommandRecorder(Device &device) : device(device) {}

  /// `stream` is done with everything.
  llvm::Error beginRun(Stream &stream);
  /// What is recorded from now on is of the next run, which comes before that
  /// one has begun.
  void endRun() { isInRun = false; }
  /// Around what a stream of that kind is given.
  llvm::Error begin(StreamKind kind, Stream &stream, int32_t command,
                    int32_t microBatch);
  llvm::Error end(StreamKind kind, Stream &stream);
  /// Whether what other streams do than the computing one is recorded.
  bool hasStreams() const { return !device.getHostMapping(); }
  /// Records what `put` puts on such a stream.
  llvm::Error recordBeside(StreamKind kind, Stream &stream, int32_t command,
                           int32_t microBatch,
                           llvm::function_ref<llvm::Error()> put);
  /// Adds what was recorded of the run. All streams are done with that.
  llvm::Error finishRun(RankTrace &trace);

private:
  struct Recorded {
    int32_t command = 0, microBatch = 0;
    StreamKind kind = StreamKind::Compute;
    /// It is of the run behind this one.
    bool isAhead = false;
    std::unique_ptr<Event> begin, end;
  };
  struct Run {
    /// What the others are timed by, and when it was.
    std::unique_ptr<Event> origin;
    Clock::time_point originTime;
    /// The first `count` were recorded since.
    std::vector<Recorded> recorded;
    size_t count = 0;
  };
  llvm::Error create(std::unique_ptr<Event> &event);
  llvm::Error setOrigin(Stream &stream);
  static llvm::Error add(const Run &run, bool ahead, RankTrace &trace);

  Device &device;
  /// Two runs in turns, as what is recorded ahead is read a run later.
  std::array<Run, 2> runs;
  size_t current = 0;
  bool isInRun = false;
  /// What each stream does now.
  std::array<size_t, numStreamKinds> open{};
};

/// Records what operations of a command do on a stream of their own.
class OperationRecorder : public StreamObserver {
public:
  OperationRecorder(CommandRecorder &recorder, StreamKind kind, int32_t command)
      : recorder(recorder), kind(kind), command(command) {}
  llvm::Error begin(Stream &stream) override {
    return recorder.begin(kind, stream, command, microBatch);
  }
  llvm::Error end(Stream &stream) override {
    return recorder.end(kind, stream);
  }

  /// Whose turn it is.
  int32_t microBatch = 0;

private:
  CommandRecorder &recorder;
  StreamKind kind;
  int32_t command;
};

} // namespace ax::rt

#endif // AX_RUNTIME_COMMANDRECORDER_H
