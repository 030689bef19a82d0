//===- ReadRecords.h - The flight records of a folder -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What FlightLog.cpp of the runtime writes. Files may be of anybody: what is
// damaged is left out, with a warning.
//
//===----------------------------------------------------------------------===//
#ifndef AX_TOOLS_AXANALYZEFLIGHT_READRECORDS_H
#define AX_TOOLS_AXANALYZEFLIGHT_READRECORDS_H

#include "llvm/Support/Error.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ax::flight {

/// Ranks that do the same exchanges in the same order; of a transfer the sender
/// and the receiver.
struct Group {
  std::string name;
  bool isTransfer = false;
  std::vector<int64_t> ranks;

  bool operator<(const Group &other) const {
    return std::tie(ranks, isTransfer, name) <
           std::tie(other.ranks, other.isTransfer, other.name);
  }
};

/// Times are microseconds since 1970.
struct Event {
  std::string kind, name, what;
  int64_t bytes = 0;
  int64_t microBatch = 0;
  std::vector<std::string> nodes;
  std::optional<int64_t> started, waited, finished;
};

/// What a rank did in one of its groups.
struct GroupHistory {
  /// Exchanges since the start of the run.
  int64_t started = 0, finished = 0;
  /// The newest, by their sequence numbers.
  std::map<int64_t, Event> events;
};

struct Record {
  int64_t rank = 0;
  int64_t numRanks = 0;
  std::string run, host, reason, doing;
  bool isFailure = false;
  int64_t taken = 0;
  /// How long its process was stopped the last time, if it was, in
  /// microseconds, and until when.
  int64_t stopped = 0;
  std::optional<int64_t> stoppedUntil;
  std::map<Group, GroupHistory> groups;
};

struct Records {
  int64_t numRanks = 0;
  /// By rank; some may be missing.
  std::map<int64_t, Record> ranks;
};

/// Reads those of the newest run, and of its failure where it had one. An
/// InputOutput error where the folder cannot be read, BadInput where there is
/// no record in it.
llvm::Expected<Records>
readRecords(const std::string &folder,
            const std::function<void(const std::string &)> &warn);

} // namespace ax::flight

#endif // AX_TOOLS_AXANALYZEFLIGHT_READRECORDS_H
