//===- Peer.h - What is known of another process ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_CONTROL_PEER_H
#define AX_RUNTIME_CONTROL_PEER_H

#include "Message.h"

#include "llvm/ADT/ArrayRef.h"

#include <algorithm>
#include <chrono>

namespace ax::rt::control {

using Clock = std::chrono::steady_clock;

struct Peer {
  int32_t process = 0;
  std::string host = {};
  Clock::time_point lastHeard = {};
  /// Its last Heartbeat, and when that came.
  Message lastSaid = {};
  Clock::time_point lastSaidAt = {};

  /// `process 2 on host b`.
  std::string describe() const;
  void hearOf(Message heartbeat) {
    lastSaid = std::move(heartbeat);
    lastSaidAt = Clock::now();
  }
  /// Likewise, and what it said last that it did, and when: `process 2 on host
  /// b (3.2 s ago it was between two steps)`.
  std::string describeLast(Clock::time_point now) const;
  /// It may have spoken while this process was stopped for so long, until
  /// `now`.
  void excuse(Clock::duration stopped, Clock::time_point now) {
    lastHeard = std::min(lastHeard + stopped, now);
  }
};

/// Returns those of `peers` that are silent for over `timeout`; where there is
/// one, also those that are about to be, since they were cut off together.
std::vector<const Peer *> findSilent(llvm::ArrayRef<const Peer *> peers,
                                     Clock::time_point now,
                                     std::chrono::milliseconds timeout);

/// So many a message names of what may be said of every process.
inline constexpr size_t mostNamed = 8;
/// `one, other, 5 more`, where there are `count` of which `texts` has at
/// least the first mostNamed.
std::string joinSome(llvm::ArrayRef<std::string> texts, size_t count,
                     llvm::StringRef between);

/// `nothing is heard any more from process 2 on host b (...), process 3 ...`.
std::string describeMissing(llvm::StringRef what,
                            llvm::ArrayRef<const Peer *> missing,
                            Clock::time_point now);

/// Says when to speak, and what time was lost that is nobody's silence.
class Pulse {
public:
  explicit Pulse(std::chrono::milliseconds timeout)
      : interval(std::min<std::chrono::milliseconds>(std::chrono::seconds(1),
                                                     timeout / 4)) {}
  /// Returns how long to sleep, in milliseconds.
  long beforeSleep(Clock::time_point now);
  /// Returns by how much more than that this process took since it slept
  /// before, because it was stopped, asleep or at work: others may have spoken,
  /// and could not be heard.
  Clock::duration afterSleep(Clock::time_point now);
  /// `this process was stopped for 3.8 s and `, where it was, a while before:
  /// others have gone on, or ended, without it. Else nothing.
  std::string describeStop(Clock::time_point now) const;
  /// Returns whether a heartbeat is due, once.
  bool isDue(Clock::time_point now);

private:
  const std::chrono::milliseconds interval;
  Clock::time_point next = {}, awake = {}, stoppedUntil = {};
  Clock::duration planned = {}, stopped = {};
};

} // namespace ax::rt::control

#endif // AX_RUNTIME_CONTROL_PEER_H
