//===- DeviceRates.h - How fast a device is at best -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_DEVICERATES_H
#define AX_RUNTIME_DEVICERATES_H

#include "ax/Runtime/Device.h"

#include "llvm/ADT/ArrayRef.h"

#include <functional>
#include <map>
#include <optional>

namespace ax::rt {

/// What one rank gets of its device, measured: of one that does nothing else,
/// or while the other ranks do the same (RateTeam).
struct DeviceRates {
  /// Floating-point operations per second in a large square product, by the
  /// type of its factors. Types that the device does not multiply are missing.
  std::map<DType, double> flopsPerSecond;
  /// Bytes per second that a large copy reads and writes, both counted; 0 where
  /// there is no memory for one.
  double bytesPerSecond = 0;

  /// Returns how long it takes at least to do so many operations on factors of
  /// that type and to move so many bytes, in seconds: the longer of both. 0
  /// where nothing is known of either.
  double leastSeconds(int64_t flops, std::optional<DType> factors,
                      int64_t bytes) const;
};

/// Returns the type by whose rate the operations of `desc` (countFlops) are
/// judged, that of its factors; nothing where these are no floats, or it counts
/// none. One of the types of eight bits stands for both.
std::optional<DType> rateType(const LibraryDesc &desc);

/// Ranks that measure at the same time, each its own device, and begin each
/// execution together. It takes as long as the slowest of them does, for whom
/// the others wait. A rank alone is a team, too.
struct RateTeam {
  /// How many of them have one memory in common, this one among them.
  int32_t numSharers = 1;
  /// Returns, when all have called it, the largest number that one of them
  /// gave. All make the same calls, in the same order.
  std::function<llvm::Expected<double>(double)> findLargest =
      [](double own) -> llvm::Expected<double> { return own; };
};

/// Measures products of these types and copies, each larger than the one before
/// until it takes long enough to be timed, by at most the rank's share of half
/// of the memory that is free: some tenths of a second, on the thread that uses
/// the device. Errors of the device, and of the team.
llvm::Expected<DeviceRates> measureRates(Device &device,
                                         llvm::ArrayRef<DType> types,
                                         const RateTeam &team = {});

/// Measures the seconds from one small product to the next, of many that a
/// stream is given one behind another: what each command takes at least,
/// whatever it computes. Nothing where there is no memory for it.
llvm::Expected<std::optional<double>>
measureCommandLatency(Device &device, const RateTeam &team = {});

} // namespace ax::rt

#endif // AX_RUNTIME_DEVICERATES_H
