//===- MessageLink.cpp - What all operations of a rank share --------------===//
//------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "MessageLink.h"

#include "ax/Runtime/MessageCommunicator.h"
#include "ax/Support/Threads.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <numeric>
#include <sched.h>
#include <unistd.h>

namespace ax::rt::messages {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

/// Looks at messages before a waiter asks for the time.
constexpr int32_t fewSpins = 30, manySpins = 1000;
/// So long a waiter gives up its core only where others may need it, and to
/// them.
constexpr auto yieldTime = microseconds(1000);
/// Then it sleeps for this part of its time.
constexpr int sleepPart = 16;
constexpr auto longestSleep = microseconds(500);
/// A look that takes longer has moved data: the waiter stays awake.
constexpr auto workTime = microseconds(20);
/// Between two looks of the thread that drives what nobody waits for.
constexpr auto driverSleep = microseconds(100);

/// Whether ranks of this host have to share cores. Launchers bind a process to
/// cores of its own where there are enough.
bool isCrowded(int32_t threads, int32_t processesOnHost) {
  cpu_set_t set;
  int64_t own = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
  return threads > own ||
         int64_t(threads) * processesOnHost > sysconf(_SC_NPROCESSORS_ONLN);
}

} // namespace

MessageLink::MessageLink(const AxMessageTable &carrier, int32_t rank,
                         int32_t numRanks, const CommunicatorOptions &options,
                         bool crowded)
    : carrier(carrier), rank(rank), numShared(static_cast<size_t>(numRanks), 0),
      timeout(options.timeout), crowded(crowded),
      spins(crowded ? fewSpins : manySpins) {}

llvm::Expected<std::shared_ptr<MessageLink>>
MessageLink::create(const AxMessageTable &carrier, const ProcessPlace &place,
                    int32_t numRanks, const CommunicatorOptions &options) {
  int32_t threads = std::max(1, options.numThreads / place.numOnHost);
  bool crowded = isCrowded(threads, place.numOnHost);
  std::shared_ptr<MessageLink> link(
      new MessageLink(carrier, place.process, numRanks, options, crowded));
  std::vector<int32_t> all(static_cast<size_t>(numRanks));
  std::iota(all.begin(), all.end(), 0);
  for (AxMessageGroup **group :
       {&link->messages, &link->groupMessages, &link->alarm})
    if (llvm::Error error = check(
            carrier,
            carrier.createGroup(carrier.context, all.data(), numRanks, group),
            llvm::formatv("rank {0}: group of all ranks", place.process).str()))
      return error;
  // It hears what is said before it first waits.
  link->listen();
  return link;
}

MessageLink::~MessageLink() {
  if (!driver.joinable())
    return;
  {
    std::lock_guard<std::mutex> lock(driverMutex);
    ending = true;
  }
  driverWake.notify_one();
  driver.join();
}

llvm::Expected<std::shared_ptr<GroupState>>
MessageLink::joinGroup(const std::vector<int32_t> &ranks) {
  std::shared_ptr<GroupState> &found = groups[ranks];
  if (found)
    return found;
  auto made = std::make_shared<GroupState>();
  BatchBuilder builder;
  for (size_t i = 0; i < ranks.size(); ++i) {
    int32_t peer = ranks[i];
    int32_t &count = numShared[static_cast<size_t>(peer)];
    if (peer != rank && count == GroupState::mostShared)
      return makeErrorf(ExitCode::RunFailed,
                        "rank {0} has more than {1} groups with rank {2}", rank,
                        GroupState::mostShared, peer);
    made->shared.push_back(count++);
    if (peer == rank)
      continue;
    int32_t tag = made->tagOf(0, static_cast<int32_t>(i));
    builder.addReceive(peer, tag, 0, 0, 0);
    builder.addSend(peer, tag, 0, 0, 0);
  }
  auto barrier = Batch::create(carrier, groupMessages, std::move(builder));
  if (!barrier)
    return barrier.takeError();
  made->barrier = std::move(*barrier);
  found = std::move(made);
  return found;
}

llvm::Error MessageLink::start(const Batch &batch,
                               llvm::ArrayRef<void *> buffers,
                               llvm::function_ref<std::string()> describe) {
  if (int error = carrier.startBatch(batch.get(), buffers.data()))
    return check(carrier, error,
                 llvm::formatv("rank {0}: {1}", rank, describe()).str());
  return llvm::Error::success();
}

llvm::Error MessageLink::wait(const Batch &batch,
                              llvm::function_ref<std::string()> describe) {
  int32_t done = 0;
  auto look = [&]() -> llvm::Error {
    if (int error = carrier.testBatch(batch.get(), &done))
      return check(carrier, error,
                   llvm::formatv("rank {0}: {1}", rank, describe()).str());
    return llvm::Error::success();
  };
  for (int32_t i = 0; i <= spins; ++i) {
    if (llvm::Error error = look())
      return error;
    if (done)
      return llvm::Error::success();
  }
  Clock::time_point begin = Clock::now(), now = begin, lastWork = begin;
  while (true) {
    listen();
    if (aborted.load(std::memory_order_acquire))
      return makeErrorf(ExitCode::RunFailed, "rank {0}: stopped in {1}: {2}",
                        rank, describe(), getAbortReason());
    if (timeout.count() > 0 && now - begin >= timeout)
      return lateError(batch, describe());
    if (now - lastWork >= yieldTime)
      std::this_thread::sleep_for(std::min<Clock::duration>(
          (now - lastWork) / sleepPart, longestSleep));
    else if (crowded)
      sched_yield();
    Clock::time_point before = Clock::now();
    if (llvm::Error error = look())
      return error;
    if (done)
      return llvm::Error::success();
    now = Clock::now();
    if (now - before > workTime)
      lastWork = now;
  }
}

llvm::Error MessageLink::lateError(const Batch &batch,
                                   const std::string &operation) const {
  std::vector<int32_t> missing(numShared.size());
  missing.resize(static_cast<size_t>(carrier.listPending(
      batch.get(), missing.data(), static_cast<int32_t>(missing.size()))));
  llvm::sort(missing);
  missing.erase(llvm::unique(missing), missing.end());
  std::string names = llvm::join(
      llvm::map_range(missing,
                      [](int32_t peer) { return std::to_string(peer); }),
      ", ");
  return makeErrorf(
      ExitCode::RunFailed, "rank {0}: {1}: waited {2} ms for rank{3} {4}", rank,
      operation, timeout.count(), missing.size() > 1 ? "s" : "", names);
}

void MessageLink::listen() {
  std::unique_lock<std::mutex> lock(earMutex, std::try_to_lock);
  if (!lock)
    return;
  char text[1024];
  int32_t heard = 0;
  // An alarm that cannot be heard is told by the World, or ends in a timeout.
  if (carrier.listen(alarm, text, sizeof(text), &heard) == 0 && heard)
    decide(text);
}

/// Returns whether this was the first reason.
bool MessageLink::decide(const std::string &why) {
  std::lock_guard<std::mutex> lock(reasonMutex);
  if (aborted.load(std::memory_order_relaxed))
    return false;
  reason = why;
  aborted.store(true, std::memory_order_release);
  return true;
}

void MessageLink::abort(const std::string &why) {
  if (!decide(why))
    return;
  // Whom this does not reach, the World tells.
  std::lock_guard<std::mutex> lock(earMutex);
  carrier.shout(alarm, why.c_str());
}

std::string MessageLink::getAbortReason() const {
  std::lock_guard<std::mutex> lock(reasonMutex);
  return reason;
}

llvm::Error MessageLink::beginOverlap() {
  {
    std::lock_guard<std::mutex> lock(driverMutex);
    if (!driver.joinable()) {
      auto thread = startThread(
          llvm::formatv("what rank {0} exchanges while it computes", rank),
          [this] { drive(); });
      if (!thread)
        return thread.takeError();
      driver = std::move(*thread);
    }
    ++numOverlaps;
  }
  driverWake.notify_one();
  return llvm::Error::success();
}

void MessageLink::endOverlap() {
  std::lock_guard<std::mutex> lock(driverMutex);
  --numOverlaps;
}

void MessageLink::drive() {
  std::unique_lock<std::mutex> lock(driverMutex);
  while (!ending) {
    if (numOverlaps == 0) {
      driverWake.wait(lock);
      continue;
    }
    lock.unlock();
    listen();
    std::this_thread::sleep_for(driverSleep);
    lock.lock();
  }
}

} // namespace ax::rt::messages
