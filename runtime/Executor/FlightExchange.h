//===- FlightExchange.h - One exchange, again and again ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_FLIGHTEXCHANGE_H
#define AX_RUNTIME_FLIGHTEXCHANGE_H

#include "FlightLog.h"

namespace ax::rt {

/// Tells a rank's log of one operation. For the rank's thread, but for
/// `describe`.
class FlightExchange {
public:
  /// Adds the operation, whose group is that of the name and the ranks.
  FlightExchange(FlightLog &log, FlightOperation operation,
                 const std::string &group, const std::vector<int32_t> &ranks,
                 bool isTransfer);

  /// `isWaited`: the rank waits for the others from here on.
  void begin(int32_t microBatch, bool isWaited);
  void wait();
  /// `count`: of the rank's command that finishes it (FlightEvent::finishedBy);
  /// 0: it is done.
  void finish(uint64_t count);

  const FlightGroup &getGroup() const { return *group; }
  std::shared_ptr<const FlightOperation> getOperation() const {
    return log.getOperation(operation);
  }
  /// `number 41 of group col`: the first that an executor that has come to
  /// `place` has not finished, else the last that was begun. For any thread.
  std::string describe(const FlightPlace &place) const;

private:
  FlightLog &log;
  FlightGroup *group;
  int32_t operation;
  /// What was begun last: its number in the group, and in the ring.
  std::atomic<uint64_t> sequence{0};
  uint64_t event = 0;
};

} // namespace ax::rt

#endif // AX_RUNTIME_FLIGHTEXCHANGE_H
