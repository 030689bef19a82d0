//===- RunningStatistics.h - What states become of batches ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_IMPORT_RUNNINGSTATISTICS_H
#define AX_LIB_IMPORT_RUNNINGSTATISTICS_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/ArrayRef.h"

namespace ax::import {

class Emitter;

/// A statistic of each part of a batch, as one call of a layer sees it.
struct Observation {
  /// As many elements as the state has, of each part.
  mlir::Value fresh;
  /// Of what was there before a part, this stays.
  double momentum;
};

/// Returns what `old` is behind a batch: all calls see its first part, then all
/// see the second, as if they were batches. Of one call with momentum m and two
/// parts: old m^2 + ((1 - m) m fresh1 + (1 - m) fresh2).
mlir::Value runOver(Emitter &b, mlir::Value old,
                    llvm::ArrayRef<Observation> calls, int64_t numParts);

} // namespace ax::import

#endif // AX_LIB_IMPORT_RUNNINGSTATISTICS_H
