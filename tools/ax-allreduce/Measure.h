//===- Measure.h - Bandwidth of an all-reduce -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_ALLREDUCE_MEASURE_H
#define AX_TOOLS_ALLREDUCE_MEASURE_H

#include "ax/Runtime/Executor.h"

#include <cstdio>
#include <cstdlib>

namespace ax::rt {

struct MeasureOptions {
  int32_t ranks = 2;
  int64_t bytes = 1 << 20;
  int32_t iterations = 2000;

  /// `[bytes [iterations [ranks]]]`
  static MeasureOptions parse(int argc, char **argv) {
    MeasureOptions options;
    if (argc > 1)
      options.bytes = std::atoll(argv[1]);
    if (argc > 2)
      options.iterations = std::atoi(argv[2]);
    if (argc > 3)
      options.ranks = std::atoi(argv[3]);
    return options;
  }
};

/// Times single calls of `allReduce` on this rank, after as many to warm up.
template <typename Fn>
TimeSummary measure(const MeasureOptions &options, Fn &&allReduce) {
  using Clock = std::chrono::steady_clock;
  std::vector<std::chrono::nanoseconds> times;
  times.reserve(static_cast<size_t>(options.iterations));
  for (int32_t i = 0; i < 2 * options.iterations; ++i) {
    Clock::time_point begin = Clock::now();
    allReduce();
    if (i >= options.iterations)
      times.push_back(Clock::now() - begin);
  }
  return summarise(std::move(times));
}

/// One line of JSON. Bus bandwidth: what a ring would move, per rank.
inline void report(const char *backend, const MeasureOptions &options,
                   const TimeSummary &summary) {
  auto microseconds = [](std::chrono::nanoseconds time) {
    return static_cast<double>(time.count()) / 1e3;
  };
  double moved = 2.0 * (options.ranks - 1) / options.ranks *
                 static_cast<double>(options.bytes);
  std::printf("{\"backend\": \"%s\", \"ranks\": %d, \"bytes\": %lld, "
              "\"median_us\": %.2f, \"p90_us\": %.2f, \"mean_us\": %.2f, "
              "\"bus_GBps\": %.3f}\n",
              backend, options.ranks, static_cast<long long>(options.bytes),
              microseconds(summary.median), microseconds(summary.p90),
              microseconds(summary.mean),
              moved / static_cast<double>(summary.median.count()));
}

} // namespace ax::rt

#endif // AX_TOOLS_ALLREDUCE_MEASURE_H
