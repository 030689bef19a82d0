//===- Training.h - What the user asks of training --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PASSES_TRAINING_H
#define AX_PASSES_TRAINING_H

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace ax {

/// What is asked of training, as written on the command line; the passes of the
/// Train phase say what each may be.
struct Training {
  std::string loss;
  std::string optimizer = "adamw";
  std::string learningRateSchedule = "constant";
  std::vector<std::string> groups;
  /// The largest global norm of the gradient; 0: any.
  double clipNorm = 0;
  /// Globs over names of states.
  std::vector<std::string> trainable, frozen;
  /// Rows that stay as they are: `PATTERN=0,7`.
  std::vector<std::string> frozenRows;
  /// What contractions compute in: fp32, bf16 or fp16.
  std::string precision = "fp32";
  /// BatchNormalization's statistics: `train`, `frozen`, or empty: as the model
  /// says.
  std::string batchNorm;
  /// The part that dropout drops where it is put back; 0: none.
  double dropout = 0;
  /// What the backward pass computes again: none, selective, full, a glob over
  /// names of nodes, `budget:SIZE`.
  std::string recompute = "none";
};

/// Returns the names of all rules in passes/Train/Optimizer/Rules, sorted.
std::vector<llvm::StringRef> optimizerNames();

} // namespace ax

#endif // AX_PASSES_TRAINING_H
