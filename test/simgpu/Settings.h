//===- Settings.h - What the simulated driver claims to be ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_SIMGPU_SETTINGS_H
#define AX_TEST_SIMGPU_SETTINGS_H

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace simgpu {

/// In which order streams do their work.
enum class Order {
  Eager,  ///< everything as soon as it can be done
  Lazy,   ///< what somebody waits for, when he does
  Unfair, ///< the same, but against a wait that is dropped
  Random  ///< any order that streams and events allow
};

/// Waits for events, some or all of those that one stream of a thread has for
/// another: streams count from 1 in the thread that makes them, and waits from
/// 0 for each two streams. Stream 0 is the host.
struct DroppedWaits {
  uint64_t waiting = 0, recorded = 0;
  /// Those whose number is `remainder`, modulo `divisor`.
  uint64_t remainder = 0, divisor = 1;
};

/// docs/gpu.md has the variables.
struct Settings {
  Order order = Order::Eager;
  uint64_t seed = 0;
  uint64_t memory = uint64_t(1) << 30;
  uint64_t cards = 1;
  /// As in sm_90, of each card; the others are as the last of these.
  std::vector<uint64_t> capabilities = {90};
  uint64_t driver = 13000;
  /// The call that fails, counted from 1, by its name or as one of all (`*`).
  std::string failingCall;
  uint64_t failingNumber = 0;
  uint64_t failingCode = 0;
  /// The cuStreamWaitEvent that does nothing, counted from 1; 0: none.
  uint64_t droppedWait = 0;
  /// Those that do nothing, too, if any.
  DroppedWaits droppedWaits;
  /// Where calls are counted in the end; empty: nowhere.
  std::string countsFile;
  /// How long a wait that nothing here can end waits for the host.
  uint64_t patienceMilliseconds = 1000;
  /// How long the driver makes code of an image.
  uint64_t jitMilliseconds = 0;
  /// How much later than an event is done every second wait of a thread for one
  /// returns, the first among them.
  uint64_t lateMicroseconds = 0;

  uint64_t capabilityOf(int card) const {
    return capabilities[std::min(static_cast<size_t>(card),
                                 capabilities.size() - 1)];
  }

  /// Names the variable of the environment that is none; empty: all are well.
  std::string fault;
};

Settings readSettings();

} // namespace simgpu

#endif // AX_TEST_SIMGPU_SETTINGS_H
