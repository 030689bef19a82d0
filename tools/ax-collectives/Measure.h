//===- Measure.h - Times of collectives, ours and others' -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_COLLECTIVES_MEASURE_H
#define AX_TOOLS_COLLECTIVES_MEASURE_H

#include "Cases.h"

#include "ax/Runtime/Communicator.h"

#include <functional>

namespace ax {

struct MeasureOptions {
  int64_t minBytes = 0, maxBytes = 0;
  int32_t rounds = 5;
  /// Does the same as a case of ours; null: nothing beside.
  std::function<llvm::Error(CaseKind kind, const float *source,
                            float *destination, int64_t count)>
      peer;
};

/// Prints a table, on rank 0; every rank calls it. A Differs error where values
/// are wrong.
llvm::Error measureAll(rt::Communicator &comm, const MeasureOptions &options);

} // namespace ax

#endif // AX_TOOLS_COLLECTIVES_MEASURE_H
