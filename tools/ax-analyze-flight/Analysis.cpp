//===- Analysis.cpp - Which rank fell out ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Analysis.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <set>

using namespace ax;
using namespace ax::flight;

/// The members of each group that have records, and what they did in it.
using Histories = std::map<Group, std::map<int64_t, const GroupHistory *>>;

static Histories collect(const Records &records) {
  Histories histories;
  for (const auto &[rank, record] : records.ranks)
    for (const auto &[group, history] : record.groups)
      histories[group][rank] = &history;
  return histories;
}

/// What the rank waits in: the oldest that has not ended, where several are on
/// their way.
static std::optional<Place> findWait(const Record &record) {
  std::optional<Place> found;
  for (const auto &[group, history] : record.groups)
    for (const auto &[sequence, event] : history.events)
      if (event.waited && !event.finished &&
          (!found || *event.waited < *found->event->waited))
        found = {&group, sequence, &event};
  return found;
}

static std::optional<Place> findLast(const Record &record) {
  std::optional<Place> found;
  for (const auto &[group, history] : record.groups)
    for (const auto &[sequence, event] : history.events)
      if (event.finished &&
          (!found || *event.finished >= *found->event->finished))
        found = {&group, sequence, &event};
  return found;
}

static std::vector<int64_t> findAwaited(const Place &place,
                                        const Records &records) {
  std::vector<int64_t> behind, unknown;
  for (int64_t member : place.group->ranks) {
    auto record = records.ranks.find(member);
    if (record == records.ranks.end()) {
      unknown.push_back(member);
      continue;
    }
    auto history = record->second.groups.find(*place.group);
    if (history == record->second.groups.end() ||
        history->second.started <= place.sequence)
      behind.push_back(member);
  }
  return behind.empty() ? unknown : behind;
}

/// Null where they agree; else whether it is only the shape.
static std::optional<bool> compare(const Event &a, const Event &b,
                                   bool isTransfer) {
  if (a.microBatch != b.microBatch ||
      (!isTransfer && (a.kind != b.kind || a.name != b.name)))
    return false;
  if (a.bytes != b.bytes || (!isTransfer && a.what != b.what))
    return true;
  return std::nullopt;
}

/// The first between any member and the first of them that has the number.
static std::optional<Disagreement>
findDisagreement(const Group &group,
                 const std::map<int64_t, const GroupHistory *> &members) {
  std::optional<Disagreement> found;
  std::map<int64_t, std::pair<int64_t, const Event *>> first;
  for (const auto &[rank, history] : members)
    for (const auto &[sequence, event] : history->events) {
      auto [at, isNew] = first.insert({sequence, {rank, &event}});
      if (isNew || (found && found->sequence <= sequence))
        continue;
      const auto &[other, theirs] = at->second;
      if (auto isOfShape = compare(*theirs, event, group.isTransfer))
        found = {other, rank, &group, sequence, theirs, &event, *isOfShape};
    }
  return found;
}

/// Those whose processes were stopped in what they wait in, or finished last;
/// not where all were, as a machine that sleeps.
static std::vector<Held> findStopped(const Records &records) {
  std::vector<Held> found;
  for (const auto &[rank, record] : records.ranks) {
    std::optional<Place> place = findWait(record);
    if (!place)
      place = findLast(record);
    if (record.stoppedUntil &&
        (!place || place->event->started.value_or(0) <= *record.stoppedUntil))
      found.push_back({rank, record.stopped, place});
  }
  if (found.size() == records.ranks.size())
    found.clear();
  return found;
}

/// Those that have begun what others wait in, and wait for nothing.
static std::vector<Held> findBegun(const Records &records,
                                   llvm::ArrayRef<Wait> waits) {
  std::map<int64_t, Held> found;
  for (const Wait &wait : waits)
    for (int64_t member : wait.place.group->ranks) {
      auto record = records.ranks.find(member);
      if (!wait.awaited.empty() || record == records.ranks.end() ||
          findWait(record->second))
        continue;
      auto group = record->second.groups.find(*wait.place.group);
      if (group == record->second.groups.end())
        continue;
      auto event = group->second.events.find(wait.place.sequence);
      if (event == group->second.events.end() || event->second.finished)
        continue;
      found[member] = {member, std::nullopt,
                       Place{&group->first, event->first, &event->second}};
    }
  std::vector<Held> inOrder;
  for (auto &[rank, one] : found)
    inOrder.push_back(one);
  return inOrder;
}

static std::optional<Late> findLate(llvm::ArrayRef<Wait> waits) {
  // Clocks of hosts differ by less.
  constexpr int64_t least = 500'000;
  if (waits.size() < 2)
    return std::nullopt;
  std::vector<std::pair<int64_t, int64_t>> times;
  for (const Wait &wait : waits)
    times.emplace_back(*wait.place.event->waited, wait.rank);
  std::sort(times.begin(), times.end());
  const auto &[last, rank] = times.back();
  // Times are not negative.
  int64_t behind = last - times[times.size() - 2].first;
  if (behind < least)
    return std::nullopt;
  return Late{rank, behind};
}

/// Whether all other members have finished what the rank waits in.
static bool isOnlyOne(const Wait &wait, const Records &records) {
  return llvm::all_of(wait.place.group->ranks, [&](int64_t member) {
    if (member == wait.rank)
      return true;
    auto record = records.ranks.find(member);
    if (record == records.ranks.end())
      return false;
    auto history = record->second.groups.find(*wait.place.group);
    return history != record->second.groups.end() &&
           history->second.finished > wait.place.sequence;
  });
}

/// Those that others wait for and that do not wait; where `orOnly`, those too
/// that are the only ones to wait in what they wait in.
static std::vector<Fallen> findFallen(const Records &records,
                                      llvm::ArrayRef<Wait> waits, bool orOnly) {
  std::set<int64_t> waiting;
  for (const Wait &wait : waits)
    if (!orOnly || !isOnlyOne(wait, records))
      waiting.insert(wait.rank);
  std::map<int64_t, Fallen> fallen;
  for (const Wait &wait : waits)
    for (int64_t rank : wait.awaited) {
      if (waiting.count(rank) || fallen.count(rank))
        continue;
      auto record = records.ranks.find(rank);
      bool hasRecord = record != records.ranks.end();
      fallen[rank] = {rank, hasRecord, wait.place,
                      hasRecord ? findLast(record->second) : std::nullopt};
    }
  std::vector<Fallen> inOrder;
  for (auto &[rank, one] : fallen)
    inOrder.push_back(one);
  return inOrder;
}

Analysis flight::analyze(const Records &records) {
  Analysis analysis;
  for (int64_t rank = 0; rank < records.numRanks; ++rank)
    if (!records.ranks.count(rank))
      analysis.missing.push_back(rank);
  for (const auto &[rank, record] : records.ranks)
    if (auto place = findWait(record))
      analysis.waits.push_back({rank, *place, findAwaited(*place, records)});
  analysis.fallen = findFallen(records, analysis.waits, /*orOnly=*/false);
  if (analysis.fallen.empty())
    analysis.held = findStopped(records);
  if (analysis.fallen.empty() && analysis.held.empty())
    analysis.held = findBegun(records, analysis.waits);
  bool isNamed = !analysis.fallen.empty() || !analysis.held.empty();
  if (!isNamed)
    analysis.late = findLate(analysis.waits);
  if (!isNamed && !analysis.late)
    analysis.fallen = findFallen(records, analysis.waits, /*orOnly=*/true);
  // Groups of the records live on, those of the map do not.
  for (const auto &[group, members] : collect(records))
    if (auto found = findDisagreement(group, members)) {
      found->group = &records.ranks.at(found->first).groups.find(group)->first;
      analysis.disagreements.push_back(*found);
    }
  return analysis;
}
