//===- Measure.h - Times of collectives, ours and others' -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_COLLECTIVES_MEASURE_H
#define AX_TOOLS_COLLECTIVES_MEASURE_H

#include "Cases.h"

#include "ax/Runtime/Communicator.h"
#include "ax/Runtime/Program.h"

namespace ax {

/// Does the same as a case of ours.
class Peer {
public:
  virtual ~Peer() = default;
  /// What calls of `run` do from now on: `count` f32 are in the source. A
  /// barrier is between this and the first of them, and behind the last.
  virtual void begin(CaseKind kind, const float *source, float *destination,
                     int64_t count) = 0;
  virtual llvm::Error run() = 0;
};

/// What adds up on a device (rt::CollectiveCommand); null where that is others'
/// business.
struct Reductions {
  std::shared_ptr<const rt::Kernel> allReduce, reduceScatter;
};

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
