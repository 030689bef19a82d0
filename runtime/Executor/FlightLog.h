//===- FlightLog.h - What one rank has exchanged ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_FLIGHTLOG_H
#define AX_RUNTIME_FLIGHTLOG_H

#include "FlightRing.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/raw_ostream.h"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace ax::rt {

/// Ranks that do the same exchanges in the same order: a group, or the sender
/// and the receiver of a transfer. The rank's thread counts.
struct FlightGroup {
  FlightGroup(std::string name, std::vector<int32_t> ranks, bool isTransfer)
      : name(std::move(name)), ranks(std::move(ranks)), isTransfer(isTransfer) {
  }
  /// `group col`, or `transfer 'x' from rank 0 to rank 1`.
  std::string describe() const;

  std::string name;
  std::vector<int32_t> ranks;
  bool isTransfer;
  std::atomic<uint64_t> started{0}, finished{0};
};

/// An exchange of a program, as the log names it.
struct FlightOperation {
  /// Of what no executor's device does.
  static constexpr size_t ofHost = ~size_t(0);

  /// Which group's, and which executor's.
  size_t group = 0;
  size_t executor = ofHost;
  std::string name;
  /// `all_reduce`, ..., `send`, `receive`.
  std::string kind;
  std::string what;
  std::string program, stage;
  std::vector<std::string> nodes;
  int64_t bytes = 0;
  /// Of a transfer: by which its two ends know it.
  int64_t tag = 0;
};

/// How far a rank of an executor is.
struct FlightPlace {
  /// Commands that its device has come to.
  uint64_t begun = 0;
  bool isIdle = true;

  /// Whether it has come past what ends the exchange, and was not only given
  /// that.
  bool isFinished(const FlightEvent &event) const {
    return event.finished && (isIdle || event.finishedBy < begun);
  }
};

/// Who may be asked where a rank is, by any thread, also with the log's mutex
/// held.
struct FlightSource {
  std::function<FlightPlace()> getPlace;
  /// What it does; asked where it is not idle.
  std::function<std::string()> describe;
};

/// What a log has at one time.
struct FlightRecord {
  struct Group {
    std::string name;
    std::vector<int32_t> ranks;
    bool isTransfer = false;
    uint64_t started = 0, finished = 0;
  };
  int32_t rank = 0;
  std::string doing;
  std::vector<Group> groups;
  std::vector<std::shared_ptr<const FlightOperation>> operations;
  std::vector<FlightEvent> events;
};

/// What stands in front of a rank's record.
struct FlightHeader {
  std::string run;
  std::string host;
  int32_t process = 0;
  int64_t numRanks = 0;
  std::string reason;
  /// Whether it was written at a failure.
  bool isFailure = false;
  /// When the record was taken, by the clock that events have, and since 1970.
  int64_t takenSteady = 0, takenWall = 0;
  /// How long the process was stopped the last time, in nanoseconds, and until
  /// when, by the clock of events; 0: it was not.
  int64_t stopped = 0, stoppedUntil = 0;
};

/// Of one rank. Executors add to it before they run; from then on the rank's
/// thread writes to ring and groups alone, of one executor at a time.
class FlightLog {
public:
  /// `keepsTimes`: else events have numbers in place of times, which tell their
  /// order alone.
  FlightLog(int32_t rank, bool keepsTimes)
      : rank(rank), keepsTimes(keepsTimes) {}

  FlightRing &getRing() { return ring; }
  const FlightRing &getRing() const { return ring; }
  /// The time of an event. For the rank's thread.
  int64_t now() { return keepsTimes ? readClock() : ++numTimes; }
  /// `source` is asked until the executor leaves.
  size_t enter(FlightSource source);
  void leave(size_t executor);
  /// The one of that name and these ranks.
  size_t openGroup(const std::string &name, const std::vector<int32_t> &ranks,
                   bool isTransfer);
  FlightGroup &getGroup(size_t group) { return groups[group]; }
  int32_t addOperation(FlightOperation operation);
  std::shared_ptr<const FlightOperation> getOperation(int32_t operation) const;

  FlightRecord read() const;
  /// Which exchanges the rank last began and finished, with their numbers;
  /// empty where it has begun none.
  std::string describeLast() const;
  /// The newest that it has begun: `number 41 of group col`; empty where there
  /// is none.
  std::string describeNewest() const;

private:
  static int64_t readClock();
  const FlightOperation &operationOf(const FlightEvent &event) const {
    return *operations[static_cast<size_t>(event.operation)];
  }
  std::string describe(const FlightEvent &event) const;
  /// Whether the executor of each event has finished it.
  std::vector<bool> findFinished(llvm::ArrayRef<FlightEvent> events) const;

  const int32_t rank;
  const bool keepsTimes;
  int64_t numTimes = 0;
  FlightRing ring;
  /// Guards all but what the rank's thread writes.
  mutable std::mutex mutex;
  std::deque<FlightGroup> groups;
  std::vector<std::shared_ptr<const FlightOperation>> operations;
  std::map<size_t, FlightSource> executors;
  size_t numEntered = 0;
};

/// One JSON object a line: the header, the groups, and the events.
void printRecord(const FlightHeader &header, const FlightRecord &record,
                 llvm::raw_ostream &os);

} // namespace ax::rt

#endif // AX_RUNTIME_FLIGHTLOG_H
