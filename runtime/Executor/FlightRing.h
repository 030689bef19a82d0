//===- FlightRing.h - The last events of a rank -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_FLIGHTRING_H
#define AX_RUNTIME_FLIGHTRING_H

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ax::rt {

/// Times are those of the steady clock in nanoseconds; 0: not yet.
struct FlightEvent {
  /// Counts all events of the ring.
  uint64_t number = 0;
  int32_t operation = 0;
  int32_t microBatch = 0;
  /// Counts what the members of a group do together.
  uint64_t sequence = 0;
  int64_t started = 0;
  /// When the rank began to wait for the others.
  int64_t waited = 0;
  int64_t finished = 0;
  /// Which of the rank's commands finished it (RankProgress::getCount): it is
  /// done when the device has come to a later one.
  uint64_t finishedBy = 0;
};

/// The newest events. One thread writes, which allocates nothing and waits for
/// nobody; any thread reads at the same time, and passes over what changes
/// meanwhile.
class FlightRing {
public:
  static constexpr size_t capacity = 1000;

  /// Returns the event's number.
  uint64_t add(int32_t operation, int32_t microBatch, uint64_t sequence,
               int64_t now);
  /// Change nothing where the event is no longer there.
  void setWaited(uint64_t number, int64_t now);
  void setFinished(uint64_t number, int64_t now, uint64_t finishedBy);

  /// Ascending by number.
  std::vector<FlightEvent> read() const;

private:
  /// Every store of a field releases, so that who reads a field of a later
  /// event sees from `version` that the slot has changed.
  struct alignas(64) Slot {
    /// 0: empty; odd while the event is written; 2 * number + 2 from then on.
    std::atomic<uint64_t> version{0};
    std::atomic<int32_t> operation{0}, microBatch{0};
    std::atomic<uint64_t> sequence{0};
    std::atomic<int64_t> started{0}, waited{0}, finished{0};
    std::atomic<uint64_t> finishedBy{0};
  };
  Slot *find(uint64_t number);

  std::array<Slot, capacity> slots;
  /// For the writer.
  uint64_t count = 0;
};

} // namespace ax::rt

#endif // AX_RUNTIME_FLIGHTRING_H
