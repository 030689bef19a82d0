//===- Report.h - How long runs took ----------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_AXRUN_REPORT_H
#define AX_TOOLS_AXRUN_REPORT_H

#include "Options.h"

#include "ax/Runtime/DeviceRates.h"

namespace ax {

struct Measurement {
  /// How long each run took, in order.
  std::vector<std::chrono::nanoseconds> times;
  /// The time from the first run's start to the last one's end.
  double totalSeconds = 0;
  int64_t flops = 0;
  double loadSeconds = 0;
  /// The part of the time that ranks waited, where a pipeline was traced;
  /// writeReports finds it.
  std::optional<double> bubble;
  /// What commands are held against.
  std::optional<rt::DeviceRates> rates;
};

/// What all ranks together did with their time in the runs that were measured,
/// in seconds.
struct RankTime {
  double computing = 0, exchanging = 0;
  /// The time that ranks wait for others.
  double waiting = 0;
  /// The time in which they do no command.
  double between = 0;
  double total = 0;
};
RankTime sumRankTime(const std::vector<rt::CommandTime> &times,
                     const rt::Program &program,
                     const Measurement &measurement);

/// `10 runs: median 1.2 ms, ...`, with what was predicted where that is known.
std::string describe(const Measurement &measurement,
                     const rt::Program &program);
/// `logits: 4x10xf32, from -3.1 to 4.2, mean 0.013; 0.1, 0.2, 0.3, ...`.
std::string describe(llvm::StringRef name, const HostTensor &tensor);
std::string toJSON(const Measurement &measurement,
                   const rt::Executor &executor);

/// Prints and writes what the options ask for of what was measured: all
/// processes make the call, and process 0 does so. Nothing may be in flight.
llvm::Error writeReports(const RunOptions &options, rt::Executor &executor,
                         Measurement measurement);

} // namespace ax

#endif // AX_TOOLS_AXRUN_REPORT_H
