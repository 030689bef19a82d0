//===- OwnMean.h - A model's own loss as sum and count ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PASSES_TRAIN_LOSS_OWNMEAN_H
#define AX_PASSES_TRAIN_LOSS_OWNMEAN_H

#include "ax/Gradients/TensorBuilder.h"

#include <optional>

namespace ax {

/// A loss as what it is divided by last, and what of: f32 scalars.
struct OwnMean {
  mlir::Value sum, count;
  /// How many numbers `sum` adds up; 1 where that is not seen.
  int64_t numAdded;
};

/// Nothing where `loss`, of one element, is no quotient of a number and one
/// that no trained weight makes. The gradient of a quotient is then that of its
/// sum, divided at the end: where both are sums over samples, parts of a batch
/// have parts of them. What only scales it behind the division is done to the
/// sum instead: -0.5 (S / C) is (-0.5 S) / C. Of several divisions it is the
/// one by what samples decide, if there is such a one.
std::optional<OwnMean> findOwnMean(TensorBuilder &t, mlir::Value loss);

} // namespace ax

#endif // AX_PASSES_TRAIN_LOSS_OWNMEAN_H
