//===- Measure.h - Times of collectives, ours and others' -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_COLLECTIVES_MEASURE_H
#define AX_TOOLS_COLLECTIVES_MEASURE_H

#include "Cases.h"

#include "ax/Runtime/Communicator.h"

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

struct MeasureOptions {
  int64_t minBytes = 0, maxBytes = 0;
  int32_t rounds = 5;
  /// Null: nothing beside.
  Peer *peer = nullptr;
};

/// Prints a table, on rank 0; every rank calls it. A Differs error where values
/// are wrong.
llvm::Error measureAll(rt::Communicator &comm, const MeasureOptions &options);

} // namespace ax

#endif // AX_TOOLS_COLLECTIVES_MEASURE_H
