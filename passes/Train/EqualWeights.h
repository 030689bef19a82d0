//===- EqualWeights.h - Weights that exporters wrote twice ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PASSES_TRAIN_EQUALWEIGHTS_H
#define AX_PASSES_TRAIN_EQUALWEIGHTS_H

#include "ax/Dialect/Ax.h"

namespace ax {

/// Warns of trained states that are equal, or each other's transpose: tied
/// weights, which exporters write twice, train as separate ones.
void warnOfTwins(PlanOp plan);

/// Warns of trained states of one number that several layers use: exporters
/// write equal weights of a fresh model once, and they train as one.
void warnOfMerged(PlanOp plan);

} // namespace ax

#endif // AX_PASSES_TRAIN_EQUALWEIGHTS_H
