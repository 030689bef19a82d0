//===- Scheduler.h - Streams of the simulated GPU ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Streams are queues of items; one scheduler does these, on the threads that
// call it, one at a time.
//
//===----------------------------------------------------------------------===//
#ifndef AX_TEST_SIMGPU_SCHEDULER_H
#define AX_TEST_SIMGPU_SCHEDULER_H

#include "Memory.h"
#include "Settings.h"

#include <chrono>
#include <cuda.h>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

namespace simgpu {

class Capture;
struct Stream;
struct Context;

/// Where an event was recorded once.
struct Point {
  /// While it is not done, the stream that gets there.
  Stream *stream = nullptr;
  bool isDone = false;
  std::chrono::steady_clock::time_point time;
  /// Where the stream was captured: nothing ever gets there. What comes before
  /// it of each chain.
  std::shared_ptr<Capture> capture;
  std::map<size_t, size_t> known;
};

/// What a stream does: a copy, a wait, a record, a kernel.
struct Item {
  /// As a report has it.
  std::string what;
  /// Memory that must not be freed before.
  std::vector<Range> uses;
  /// What else must be done before: a point that another stream gets to, or a
  /// condition.
  std::shared_ptr<Point> awaited;
  std::function<bool()> isReady;
  /// An error is one of the context, from then on. Empty: there is nothing to
  /// be done.
  std::function<CUresult()> run;
  /// Makes `isReady` and `run`, which are for once; empty: they are for always.
  std::function<void(Item &)> renew;
  /// The number of the event that is recorded in each launch of a graph.
  uint64_t recorded = 0;
  /// The point that the stream is at then.
  std::shared_ptr<Point> reached;

  void reach() {
    if (!reached)
      return;
    reached->isDone = true;
    reached->time = std::chrono::steady_clock::now();
  }
};

struct Stream {
  uint64_t number = 0;
  /// Among those of the thread that made it.
  uint64_t numberInThread = 0;
  Context *context = nullptr;
  /// How often its turn comes in a random order, beside others: without it,
  /// none would ever be far behind.
  uint64_t speed = 1;
  /// It has no handle any more, but does what it has.
  bool isDestroyed = false;
  /// Where it is captured, and its chain there.
  std::shared_ptr<Capture> capture;
  size_t chain = 0;
  std::deque<Item> items;
};

class Scheduler {
public:
  /// How the number of done items is told, and whether the next one is to fail.
  using CountWork = std::function<CUresult()>;

  Scheduler(const Settings &settings, CountWork countWork)
      : settings(settings), countWork(std::move(countWork)),
        random(settings.seed) {}

  Stream &create(Context &context);
  /// Puts an item at the end of the stream, or where that is captured keeps it.
  void push(Stream &stream, Item item);
  /// The host asks whether the stream is there: somewhen it will be.
  void poll(Stream &stream);
  /// A stream does not wait for the point. In the unfair order, the one that
  /// gets there does nothing from now on while others have something to do, and
  /// these do all that they can: whatever needs that wait, goes wrong. So do
  /// all streams that got to be starved, until each is at its point.
  void starve(const std::shared_ptr<Point> &point);
  /// Does work until `isDone()`, of which `stream` has what is to be done.
  /// Returns an empty text, or all streams' heads when nothing can end the
  /// wait. Meanwhile the lock is opened where only the host can.
  template <typename IsDone>
  std::string wait(Stream &stream, IsDone &&isDone,
                   std::unique_lock<std::mutex> &lock) {
    auto begin = std::chrono::steady_clock::now();
    for (int rests = 0; !isDone();) {
      if (doWorkFor(stream, rests == mostRests))
        continue;
      // Other threads may have something to do for others soon.
      bool rested = isAnyStarved() && rests++ < mostRests;
      if (!rested &&
          std::chrono::steady_clock::now() - begin >
              std::chrono::milliseconds(settings.patienceMilliseconds))
        return describeHeads();
      lock.unlock();
      letOthersRun();
      lock.lock();
    }
    return "";
  }
  /// Drops all that streams of the context have, as if it were done, or the
  /// streams, too.
  void dropWork(const Context &context);
  void dropStreams(const Context &context);
  /// Returns the item that uses some of the memory; null: none.
  const Item *findUser(Range memory) const;

private:
  static bool canRun(const Stream &stream);
  /// One of those that can run.
  Stream &choose(const std::vector<Stream *> &able);
  void runHead(Stream &stream);
  /// How often the host sleeps before it lets a starved stream work.
  static constexpr int mostRests = 100;
  /// Returns false where nothing can be done; `feeds`: by a starved stream,
  /// too.
  bool doWorkFor(Stream &stream, bool feeds);
  bool doAny();
  /// Whether the stream does nothing while others can, or any does.
  bool isStarved(const Stream &stream) const;
  bool isAnyStarved() const;
  /// Does something that the stream needs.
  bool doNeeded(Stream &stream);
  std::string describeHeads() const;
  static void letOthersRun();

  const Settings &settings;
  CountWork countWork;
  std::mt19937_64 random;
  /// Of each rank what it was to be starved for.
  std::vector<std::shared_ptr<Point>> missed;
  uint64_t numStreams = 0;
  /// In the order in which they were made.
  std::vector<std::unique_ptr<Stream>> streams;
};

} // namespace simgpu

#endif // AX_TEST_SIMGPU_SCHEDULER_H
