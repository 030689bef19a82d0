//===- Capture.h - What captured streams are given --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// While a stream is captured, nothing of it is done: what it is given stays in
// a chain, one thing behind another, and waits for events tie chains to each
// other. A graph is all of them, and a launch does each chain on a stream of
// its own: in any order that these allow.
//
//===----------------------------------------------------------------------===//
#ifndef AX_TEST_SIMGPU_CAPTURE_H
#define AX_TEST_SIMGPU_CAPTURE_H

#include "Scheduler.h"

#include <thread>

namespace simgpu {

/// What one stream was given.
struct Chain {
  /// Of the stream.
  uint64_t numberInThread = 0;
  /// Their points are those of the capture: each launch has others.
  std::vector<Item> items;
};

struct Graph {
  Context *context = nullptr;
  /// The first is of the stream where the capture began, and ends last.
  std::vector<Chain> chains;

  size_t countItems() const;
};

/// A graph that can be launched.
struct GraphExec {
  std::shared_ptr<const Graph> graph;
  /// Memory of the card that it takes.
  uintptr_t memory = 0;
  /// Of the last launch; null: there was none.
  std::shared_ptr<Point> end;
};

class Capture : public std::enable_shared_from_this<Capture> {
public:
  Capture(Context &context, CUstreamCaptureMode mode)
      : context(&context), mode(mode) {}

  /// Makes the stream one of those that are captured.
  void join(Stream &stream);
  void add(Stream &stream, Item item);
  /// A point of the chain of the stream.
  std::shared_ptr<Point> record(const Stream &stream);
  /// The chain goes on behind the point, too, which is one of this capture.
  void wait(Stream &stream, const std::shared_ptr<Point> &point);

  /// Whether calls of the thread that captures never see are forbidden.
  bool forbidsUnsafe() const {
    return mode == CU_STREAM_CAPTURE_MODE_GLOBAL ||
           (mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && isOfThread());
  }
  bool mayEndHere() const {
    return mode == CU_STREAM_CAPTURE_MODE_RELAXED || isOfThread();
  }
  bool isOrigin(const Stream &stream) const {
    return !streams.empty() && streams.front() == &stream;
  }
  /// Whether all that others than the first were given comes before its end.
  bool isJoined() const;
  /// Nothing is captured any more. Returns what was.
  Graph end();
  /// The stream is gone; with the first one all of it.
  void leave(Stream &stream);

  bool hasEnded() const { return streams.empty(); }

  bool isInvalid = false;

private:
  bool isOfThread() const { return thread == std::this_thread::get_id(); }

  Context *context;
  CUstreamCaptureMode mode;
  std::thread::id thread = std::this_thread::get_id();
  std::vector<Stream *> streams;
  std::vector<Chain> chains;
  /// Of each chain, how much work of each other one comes before what it gets
  /// next; of itself, how much it has.
  std::vector<std::map<size_t, size_t>> known;
};

} // namespace simgpu

#endif // AX_TEST_SIMGPU_CAPTURE_H
