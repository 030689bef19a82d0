//===- Measure.h - Times of collectives, ours and others' -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_COLLECTIVES_MEASURE_H
#define AX_TOOLS_COLLECTIVES_MEASURE_H

#include "CaseRun.h"

namespace ax {

struct MeasureOptions {
  int64_t minBytes = 0, maxBytes = 0;
  int32_t rounds = 5;
  Reductions reductions;
  /// Null: nothing beside. Else the device works on the host's memory.
  Peer *peer = nullptr;
};

/// Exchanges what is in memory of the rank's device, and prints a table, on
/// rank 0; every rank calls it. A Differs error where values are wrong.
llvm::Error measureAll(rt::Communicator &comm, rt::Device &device,
                       const MeasureOptions &options);

} // namespace ax

#endif // AX_TOOLS_COLLECTIVES_MEASURE_H
