//===- FlightExchange.cpp - One exchange, again and again -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "FlightExchange.h"

#include <chrono>

namespace ax::rt {

constexpr auto relaxed = std::memory_order_relaxed;

/// Of the clock that events have.
static int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

FlightExchange::FlightExchange(FlightLog &log, FlightOperation given,
                               const std::string &groupName,
                               const std::vector<int32_t> &ranks,
                               bool isTransfer)
    : log(log) {
  given.group = log.openGroup(groupName, ranks, isTransfer);
  group = &log.getGroup(given.group);
  operation = log.addOperation(std::move(given));
}

void FlightExchange::begin(int32_t microBatch, bool isWaited) {
  uint64_t number = group->started.load(relaxed);
  sequence.store(number, relaxed);
  if (FlightRing *ring = log.getRing()) {
    int64_t time = now();
    event = ring->add(operation, microBatch, number, time);
    if (isWaited)
      ring->setWaited(event, time);
  }
  group->started.store(number + 1, relaxed);
  log.setStarted(operation, number);
}

void FlightExchange::wait() {
  if (FlightRing *ring = log.getRing())
    ring->setWaited(event, now());
}

void FlightExchange::finish(uint64_t count) {
  if (FlightRing *ring = log.getRing())
    ring->setFinished(event, now(), count);
  group->finished.store(group->finished.load(relaxed) + 1, relaxed);
  log.setFinished(operation, sequence.load(relaxed));
}

std::string FlightExchange::describe() const {
  return "number " + std::to_string(sequence.load(relaxed)) + " of " +
         group->describe();
}

} // namespace ax::rt
