//===- FlightTrack.h - A rank's exchanges, on to its log --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_FLIGHTTRACK_H
#define AX_RUNTIME_FLIGHTTRACK_H

#include "FlightExchange.h"
#include "RankContext.h"

namespace ax::rt {

class PreparedExchanges;

/// Which of a rank's commands begin and end exchanges. For the rank's thread.
class FlightTrack {
public:
  /// `source`: see FlightLog::enter.
  FlightTrack(FlightLog &log, const RankContext &context, FlightSource source);
  ~FlightTrack();
  FlightTrack(const FlightTrack &) = delete;
  FlightTrack &operator=(const FlightTrack &) = delete;

  /// Around what puts a command on the streams; `command` counts those of all
  /// of the stage's lists, and `count` is RankProgress's for it.
  void begin(size_t command, int32_t microBatch) {
    const Mark &mark = marks[command];
    if (mark.begins)
      exchanges[mark.exchange].begin(microBatch, mark.ends);
    else if (mark.ends)
      exchanges[mark.exchange].wait();
  }
  void end(size_t command, uint64_t count) {
    if (marks[command].ends)
      exchanges[marks[command].exchange].finish(count);
  }
  /// Whether these do anything for the command.
  bool follows(size_t command) const {
    return marks[command].begins || marks[command].ends;
  }
  /// `, number 41 of group col`, where the command is of an exchange; else
  /// nothing. For any thread.
  std::string describe(size_t command) const;
  std::string describeLast() const { return log.describeLast(); }
  std::string describeNewest() const { return log.describeNewest(); }
  /// Adds the rank's exchanges.
  void list(PreparedExchanges &to) const;

private:
  /// What a command is to an exchange: all of it, its start, or its wait.
  struct Mark {
    bool begins = false, ends = false;
    size_t exchange = 0;
  };
  void add(const RankContext &context, const Command &command,
           std::map<int32_t, size_t> &requests);
  void addExchange(const RankContext &context, const Command &command,
                   FlightOperation operation, const std::string &group,
                   const std::vector<int32_t> &ranks);

  FlightLog &log;
  std::function<FlightPlace()> getPlace;
  size_t executor;
  const StageProgram &stage;
  std::vector<Mark> marks;
  /// The first mark of each list.
  std::vector<size_t> firstMark;
  /// They stay where they are.
  std::deque<FlightExchange> exchanges;
};

} // namespace ax::rt

#endif // AX_RUNTIME_FLIGHTTRACK_H
