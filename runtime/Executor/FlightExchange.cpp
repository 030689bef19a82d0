//===- FlightExchange.cpp - One exchange, again and again -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "FlightExchange.h"

namespace ax::rt {

constexpr auto relaxed = std::memory_order_relaxed;

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
  int64_t time = log.now();
  event = log.getRing().add(operation, microBatch, number, time);
  if (isWaited)
    log.getRing().setWaited(event, time);
  group->started.store(number + 1, relaxed);
}

void FlightExchange::wait() { log.getRing().setWaited(event, log.now()); }

void FlightExchange::finish(uint64_t count) {
  log.getRing().setFinished(event, log.now(), count);
  group->finished.store(group->finished.load(relaxed) + 1, relaxed);
}

std::string FlightExchange::describe(const FlightPlace &place) const {
  uint64_t number = sequence.load(relaxed);
  // Of those that a device was given it is at the first that is not finished.
  for (const FlightEvent &event : log.getRing().read())
    if (event.operation == operation && !place.isFinished(event)) {
      number = event.sequence;
      break;
    }
  return "number " + std::to_string(number) + " of " + group->describe();
}

} // namespace ax::rt
