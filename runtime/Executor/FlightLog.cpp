//===- FlightLog.cpp - What one rank has exchanged ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "FlightLog.h"

#include "llvm/Support/JSON.h"

namespace ax::rt {

std::string FlightGroup::describe() const {
  if (!isTransfer)
    return "group " + name;
  return "transfer '" + name + "' from rank " + std::to_string(ranks[0]) +
         " to rank " + std::to_string(ranks[1]);
}

size_t FlightLog::enter(std::function<FlightPlace()> where) {
  std::lock_guard<std::mutex> lock(mutex);
  executors[numEntered] = std::move(where);
  return numEntered++;
}

void FlightLog::leave(size_t executor) {
  std::lock_guard<std::mutex> lock(mutex);
  executors.erase(executor);
}

size_t FlightLog::openGroup(const std::string &name,
                            const std::vector<int32_t> &ranks,
                            bool isTransfer) {
  std::lock_guard<std::mutex> lock(mutex);
  for (size_t i = 0; i < groups.size(); ++i)
    if (groups[i].name == name && groups[i].ranks == ranks &&
        groups[i].isTransfer == isTransfer)
      return i;
  groups.emplace_back(name, ranks, isTransfer);
  return groups.size() - 1;
}

int32_t FlightLog::addOperation(FlightOperation operation) {
  std::lock_guard<std::mutex> lock(mutex);
  operations.push_back(
      std::make_shared<const FlightOperation>(std::move(operation)));
  return static_cast<int32_t>(operations.size() - 1);
}

std::shared_ptr<const FlightOperation>
FlightLog::getOperation(int32_t operation) const {
  std::lock_guard<std::mutex> lock(mutex);
  return operations[static_cast<size_t>(operation)];
}

/// With the mutex held.
std::string FlightLog::describe(uint64_t packed) const {
  if (!packed)
    return "none";
  const FlightOperation &of =
      *operations[static_cast<size_t>((packed >> sequenceBits) - 1)];
  return "number " +
         std::to_string(packed & ((uint64_t(1) << sequenceBits) - 1)) + " of " +
         groups[of.group].describe() + ", '" + of.name + "'";
}

std::string FlightLog::describeLast() const {
  uint64_t finished = lastFinished.load(std::memory_order_relaxed);
  uint64_t started = lastStarted.load(std::memory_order_relaxed);
  if (!started)
    return "";
  std::lock_guard<std::mutex> lock(mutex);
  return "its last exchange begun: " + describe(started) +
         (finished == started ? ", and finished"
                              : "; finished: " + describe(finished));
}

FlightRecord FlightLog::read() const {
  std::lock_guard<std::mutex> lock(mutex);
  FlightRecord record;
  record.rank = rank;
  std::map<size_t, FlightPlace> places;
  for (const auto &[executor, where] : executors) {
    FlightPlace place = where();
    if (!place.isIdle)
      record.doing = place.doing;
    places[executor] = std::move(place);
  }
  for (const FlightGroup &group : groups)
    record.groups.push_back({group.name, group.ranks, group.isTransfer,
                             group.started.load(), group.finished.load()});
  record.operations = operations;
  if (ring)
    record.events = ring->read();
  // A device may not have come as far as what it was given.
  for (FlightEvent &event : record.events) {
    const FlightOperation &operation =
        *operations[static_cast<size_t>(event.operation)];
    auto place = places.find(operation.executor);
    if (place != places.end() && !place->second.isIdle &&
        event.finishedBy >= place->second.begun)
      event.finished = 0;
  }
  return record;
}

void printRecord(const FlightHeader &header, const FlightRecord &record,
                 llvm::raw_ostream &os) {
  using llvm::json::fixUTF8;
  using llvm::json::OStream;
  // A stream is for one value.
  auto line = [&](llvm::function_ref<void(OStream &)> body) {
    {
      OStream json(os);
      json.object([&] { body(json); });
    }
    os << '\n';
  };
  auto ranks = [](OStream &json, const std::vector<int32_t> &of) {
    json.attributeArray("ranks", [&] {
      for (int32_t rank : of)
        json.value(rank);
    });
  };
  /// In microseconds since 1970.
  auto time = [&](OStream &json, llvm::StringRef name, int64_t steady) {
    if (steady)
      json.attribute(name,
                     (header.takenWall + steady - header.takenSteady) / 1000);
    else
      json.attribute(name, nullptr);
  };
  line([&](OStream &json) {
    json.attribute("flight_record", 1);
    json.attribute("rank", record.rank);
    json.attribute("num_ranks", header.numRanks);
    json.attribute("run", header.run);
    json.attribute("host", fixUTF8(header.host));
    json.attribute("process", header.process);
    json.attribute("is_failure", header.isFailure);
    json.attribute("reason", fixUTF8(header.reason));
    json.attribute("doing", fixUTF8(record.doing));
    time(json, "taken", header.takenSteady);
  });
  for (size_t i = 0; i < record.groups.size(); ++i)
    line([&](OStream &json) {
      const FlightRecord::Group &group = record.groups[i];
      json.attribute("group", static_cast<int64_t>(i));
      json.attribute("name", fixUTF8(group.name));
      ranks(json, group.ranks);
      json.attribute("is_transfer", group.isTransfer);
      json.attribute("started", static_cast<int64_t>(group.started));
      json.attribute("finished", static_cast<int64_t>(group.finished));
    });
  for (const FlightEvent &event : record.events)
    line([&](OStream &json) {
      const FlightOperation &of =
          *record.operations[static_cast<size_t>(event.operation)];
      json.attribute("event", static_cast<int64_t>(event.number));
      json.attribute("in_group", static_cast<int64_t>(of.group));
      json.attribute("sequence", static_cast<int64_t>(event.sequence));
      json.attribute("name", fixUTF8(of.name));
      json.attribute("kind", of.kind);
      json.attribute("what", fixUTF8(of.what));
      json.attribute("bytes", of.bytes);
      json.attributeArray("nodes", [&] {
        for (const std::string &node : of.nodes)
          json.value(fixUTF8(node));
      });
      json.attribute("program", fixUTF8(of.program));
      json.attribute("stage", fixUTF8(of.stage));
      json.attribute("micro_batch", event.microBatch);
      time(json, "started", event.started);
      time(json, "waited", event.waited);
      time(json, "finished", event.finished);
    });
}

} // namespace ax::rt
