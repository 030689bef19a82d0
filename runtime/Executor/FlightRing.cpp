//===- FlightRing.cpp - The last events of a rank -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "FlightRing.h"

#include <algorithm>

namespace ax::rt {

constexpr auto acquire = std::memory_order_acquire;
constexpr auto release = std::memory_order_release;
constexpr auto relaxed = std::memory_order_relaxed;

uint64_t FlightRing::add(int32_t operation, int32_t microBatch,
                         uint64_t sequence, int64_t now) {
  uint64_t number = count++;
  Slot &slot = slots[number % capacity];
  slot.version.store(2 * number + 1, relaxed);
  slot.operation.store(operation, release);
  slot.microBatch.store(microBatch, release);
  slot.sequence.store(sequence, release);
  slot.started.store(now, release);
  slot.waited.store(0, release);
  slot.finished.store(0, release);
  slot.finishedBy.store(0, release);
  slot.version.store(2 * number + 2, release);
  return number;
}

FlightRing::Slot *FlightRing::find(uint64_t number) {
  Slot &slot = slots[number % capacity];
  return slot.version.load(relaxed) == 2 * number + 2 ? &slot : nullptr;
}

void FlightRing::setWaited(uint64_t number, int64_t now) {
  if (Slot *slot = find(number))
    slot->waited.store(now, release);
}

void FlightRing::setFinished(uint64_t number, int64_t now,
                             uint64_t finishedBy) {
  Slot *slot = find(number);
  if (!slot)
    return;
  slot->finishedBy.store(finishedBy, release);
  slot->finished.store(now, release);
}

std::vector<FlightEvent> FlightRing::read() const {
  std::vector<FlightEvent> events;
  events.reserve(capacity);
  for (const Slot &slot : slots) {
    uint64_t version = slot.version.load(acquire);
    if (version == 0 || version % 2 != 0)
      continue;
    FlightEvent event;
    event.number = version / 2 - 1;
    event.operation = slot.operation.load(acquire);
    event.microBatch = slot.microBatch.load(acquire);
    event.sequence = slot.sequence.load(acquire);
    event.started = slot.started.load(acquire);
    event.waited = slot.waited.load(acquire);
    event.finished = slot.finished.load(acquire);
    event.finishedBy = slot.finishedBy.load(acquire);
    if (slot.version.load(relaxed) == version)
      events.push_back(event);
  }
  std::sort(events.begin(), events.end(),
            [](const FlightEvent &a, const FlightEvent &b) {
              return a.number < b.number;
            });
  return events;
}

} // namespace ax::rt
