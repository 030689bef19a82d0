//===- FlightLog.h - What one rank has exchanged ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_FLIGHTLOG_H
#define AX_RUNTIME_FLIGHTLOG_H

#include "FlightRing.h"

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
};

/// What a rank of an executor does now.
struct FlightPlace {
  std::string doing;
  /// Commands that its device has come to.
  uint64_t begun = 0;
  bool isIdle = true;
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
};

/// Of one rank. Executors add to it before they run; from then on the rank's
/// thread writes to ring, groups and what was last alone, of one executor at a
/// time.
class FlightLog {
public:
  /// `keepsEvents`: else it only counts, and has no ring.
  FlightLog(int32_t rank, bool keepsEvents)
      : rank(rank),
        ring(keepsEvents ? std::make_unique<FlightRing>() : nullptr) {}

  FlightRing *getRing() { return ring.get(); }
  /// `where` is asked until the executor leaves, from any thread.
  size_t enter(std::function<FlightPlace()> where);
  void leave(size_t executor);
  /// The one of that name and these ranks.
  size_t openGroup(const std::string &name, const std::vector<int32_t> &ranks,
                   bool isTransfer);
  FlightGroup &getGroup(size_t group) { return groups[group]; }
  int32_t addOperation(FlightOperation operation);
  std::shared_ptr<const FlightOperation> getOperation(int32_t operation) const;
  void setStarted(int32_t operation, uint64_t sequence) {
    lastStarted.store(pack(operation, sequence), std::memory_order_relaxed);
  }
  void setFinished(int32_t operation, uint64_t sequence) {
    lastFinished.store(pack(operation, sequence), std::memory_order_relaxed);
  }

  FlightRecord read() const;
  /// Which exchanges the rank last began and finished, with their numbers;
  /// empty where it has begun none.
  std::string describeLast() const;

private:
  /// Of an operation and a number in its group; 0: none.
  static constexpr int sequenceBits = 40;
  static uint64_t pack(int32_t operation, uint64_t sequence) {
    constexpr uint64_t mask = (uint64_t(1) << sequenceBits) - 1;
    return (static_cast<uint64_t>(operation) + 1) << sequenceBits |
           (sequence & mask);
  }
  std::string describe(uint64_t packed) const;

  const int32_t rank;
  const std::unique_ptr<FlightRing> ring;
  std::atomic<uint64_t> lastStarted{0}, lastFinished{0};
  /// Guards all but what the rank's thread writes.
  mutable std::mutex mutex;
  std::deque<FlightGroup> groups;
  std::vector<std::shared_ptr<const FlightOperation>> operations;
  std::map<size_t, std::function<FlightPlace()>> executors;
  size_t numEntered = 0;
};

/// One JSON object a line: the header, the groups, and the events.
void printRecord(const FlightHeader &header, const FlightRecord &record,
                 llvm::raw_ostream &os);

} // namespace ax::rt

#endif // AX_RUNTIME_FLIGHTLOG_H
