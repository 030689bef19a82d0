//===- FlightLog.cpp - What one rank has exchanged ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "FlightLog.h"

#include "llvm/Support/JSON.h"

#include <algorithm>
#include <chrono>

namespace ax::rt {

std::string FlightGroup::describe() const {
  if (!isTransfer)
    return "group " + name;
  return "transfer '" + name + "' from rank " + std::to_string(ranks[0]) +
         " to rank " + std::to_string(ranks[1]);
}

/// Of the clock that events have.
int64_t FlightLog::readClock() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

size_t FlightLog::enter(FlightSource source) {
  std::lock_guard<std::mutex> lock(mutex);
  executors[numEntered] = std::move(source);
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
std::string FlightLog::describe(const FlightEvent &event) const {
  const FlightOperation &of = operationOf(event);
  return "number " + std::to_string(event.sequence) + " of " +
         groups[of.group].describe() + ", '" + of.name + "'";
}

/// With the mutex held.
std::vector<bool>
FlightLog::findFinished(llvm::ArrayRef<FlightEvent> events) const {
  std::map<size_t, FlightPlace> places;
  for (const auto &[executor, source] : executors)
    places[executor] = source.getPlace();
  std::vector<bool> isFinished;
  // What no executor does, or one that has left, was finished at once.
  for (const FlightEvent &event : events)
    isFinished.push_back(places[operationOf(event).executor].isFinished(event));
  return isFinished;
}

std::string FlightLog::describeLast() const {
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<FlightEvent> events = ring.read();
  if (events.empty())
    return "";
  std::vector<bool> isFinished = findFinished(events);
  const FlightEvent *finished = nullptr;
  for (size_t i = 0; i < events.size(); ++i)
    if (isFinished[i] && (!finished || events[i].finished > finished->finished))
      finished = &events[i];
  std::string text = "its last exchange begun: " + describe(events.back());
  if (finished == &events.back())
    return text + ", and finished";
  if (finished)
    return text + "; finished: " + describe(*finished);
  text += "; finished: none";
  if (events.front().number > 0)
    text += " of the newest " + std::to_string(events.size());
  return text;
}

std::string FlightLog::describeNewest() const {
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<FlightEvent> events = ring.read();
  if (events.empty())
    return "";
  const FlightEvent &newest = events.back();
  return "number " + std::to_string(newest.sequence) + " of " +
         groups[operationOf(newest).group].describe();
}

FlightRecord FlightLog::read() const {
  std::lock_guard<std::mutex> lock(mutex);
  FlightRecord record;
  record.rank = rank;
  for (const auto &[executor, source] : executors)
    if (!source.getPlace().isIdle)
      record.doing = source.describe();
  for (const FlightGroup &group : groups) {
    // What is finished meanwhile is not before it is begun.
    uint64_t finished = group.finished.load();
    record.groups.push_back({group.name, group.ranks, group.isTransfer,
                             group.started.load(), finished});
  }
  record.operations = operations;
  record.events = ring.read();
  // A device may not have come as far as what it was given.
  std::vector<bool> isFinished = findFinished(record.events);
  for (size_t i = 0; i < record.events.size(); ++i) {
    FlightEvent &event = record.events[i];
    if (isFinished[i] || !event.finished)
      continue;
    event.finished = 0;
    uint64_t &count = record.groups[operationOf(event).group].finished;
    count = std::min(count, event.sequence);
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
    json.attribute("stopped", header.stopped / 1000);
    time(json, "stopped_until", header.stoppedUntil);
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
