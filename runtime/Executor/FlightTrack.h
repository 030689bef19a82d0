//===- FlightTrack.h - A rank's exchanges, on to its log --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_FLIGHTTRACK_H
#define AX_RUNTIME_FLIGHTTRACK_H

#include "FlightLog.h"
#include "RankContext.h"

namespace ax::rt {

/// Which of a rank's commands begin and end exchanges. For the rank's thread.
class FlightTrack {
public:
  /// `where`: see FlightLog::enter.
  FlightTrack(FlightLog &log, const RankContext &context,
              std::function<FlightPlace()> where);
  ~FlightTrack();
  FlightTrack(const FlightTrack &) = delete;
  FlightTrack &operator=(const FlightTrack &) = delete;

  /// Around what puts a command on the streams; `command` counts those of all
  /// of the stage's lists, and `count` is RankProgress's for it.
  void begin(size_t command, int32_t microBatch) {
    if (marks[command].begins || marks[command].ends)
      note(marks[command], microBatch);
  }
  void end(size_t command, uint64_t count) {
    if (marks[command].ends)
      finish(exchanges[marks[command].exchange], count);
  }

private:
  /// What a command is to an exchange: all of it, its start, or its wait.
  struct Mark {
    bool begins = false, ends = false;
    size_t exchange = 0;
  };
  struct Exchange {
    int32_t operation = 0;
    FlightGroup *group = nullptr;
    /// That was added last.
    uint64_t event = 0;
  };

  void add(const RankContext &context, const Command &command,
           std::map<int32_t, size_t> &requests);
  void addExchange(const RankContext &context, const Command &command,
                   FlightOperation operation, const std::string &group,
                   const std::vector<int32_t> &ranks);
  void note(const Mark &mark, int32_t microBatch);
  void finish(Exchange &exchange, uint64_t count);

  FlightLog &log;
  FlightRing &ring;
  size_t executor;
  std::vector<Mark> marks;
  std::vector<Exchange> exchanges;
};

} // namespace ax::rt

#endif // AX_RUNTIME_FLIGHTTRACK_H
