//===- FitLink.h - Latency and bandwidth of measured exchanges --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_COST_FITLINK_H
#define AX_COST_FITLINK_H

#include "ax/Sharding/Reshard.h"
#include "ax/Support/MachineRates.h"

#include "llvm/ADT/ArrayRef.h"

namespace ax::cost {

/// The seconds that a collective was measured to take, of which each of `ranks`
/// ranks, two or more, has so many bytes (sharding::payloadBytes).
struct LinkSample {
  sharding::StepKind kind;
  int64_t ranks;
  double bytes, seconds;
};

struct LinkFit {
  Link link;
  /// By which factor, up or down, measured times differ from those that `link`
  /// predicts: e to the root of the mean square of their logarithms.
  double error = 1;
};

/// Returns the link by which sharding::RingCost comes nearest to the samples,
/// of which there are some of few bytes and some of many. To be twice as slow
/// as predicted is as bad as to be twice as fast, whatever the size: what is
/// least is the sum of squares of the logarithms of measured by predicted.
LinkFit fitLink(llvm::ArrayRef<LinkSample> samples);

} // namespace ax::cost

#endif // AX_COST_FITLINK_H
