//===- FitLink.cpp - Latency and bandwidth of measured exchanges ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A ring takes  latency * hops + moved / bandwidth,  which is
//
//   (hops * worth + moved) / bandwidth,   worth = latency * bandwidth:
//
// the bytes that would travel in the time of a hop. Once these are chosen, the
// bandwidth with the least error is known, so that only they are searched for.
//
//===----------------------------------------------------------------------===//
#include "ax/Cost/FitLink.h"

#include <cmath>
#include <limits>

using namespace ax;
using sharding::RingCost;

namespace {

/// What is left to be chosen when the worth is.
struct Trial {
  double logSecondsPerByte = 0;
  /// The mean square of what the logarithms of times are off by.
  double error = 0;
};

} // namespace

static Trial tryWorth(double worth, llvm::ArrayRef<cost::LinkSample> samples) {
  const RingCost hop{1, std::numeric_limits<double>::infinity()}, byte{0, 1};
  double sum = 0, sumOfSquares = 0;
  for (const cost::LinkSample &sample : samples) {
    double bytes = worth * hop.seconds(sample.kind, sample.ranks, 0) +
                   byte.seconds(sample.kind, sample.ranks, sample.bytes);
    double log = std::log(sample.seconds / bytes);
    sum += log;
    sumOfSquares += log * log;
  }
  auto count = static_cast<double>(samples.size());
  double mean = sum / count;
  return {mean, std::fmax(0, sumOfSquares / count - mean * mean)};
}

cost::LinkFit cost::fitLink(llvm::ArrayRef<LinkSample> samples) {
  auto errorOf = [&](double logWorth) {
    return tryWorth(std::exp2(logWorth), samples).error;
  };
  // From a byte to what no network has on its way.
  double best = 0;
  for (int i = 1; i <= 40; ++i)
    if (errorOf(i) < errorOf(best))
      best = i;
  double least = best - 1, most = best + 1;
  while (most - least > 1e-9) {
    double third = (most - least) / 3;
    if (errorOf(least + third) < errorOf(most - third))
      most -= third;
    else
      least += third;
  }
  double worth = std::exp2((least + most) / 2);
  Trial found = tryWorth(worth, samples);
  double secondsPerByte = std::exp(found.logSecondsPerByte);
  return {{worth * secondsPerByte, 1 / secondsPerByte},
          std::exp(std::sqrt(found.error))};
}
