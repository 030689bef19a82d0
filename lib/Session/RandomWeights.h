//===- RandomWeights.h - Made-up weights for a plan -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_SESSION_RANDOMWEIGHTS_H
#define AX_LIB_SESSION_RANDOMWEIGHTS_H

#include "ax/Runtime/Program.h"

namespace ax {

/// Gives the weights of the programs values of their own in place of those in
/// the model's files, which need not be there: to measure with. Equal seeds
/// give equal weights, in each program and on every layout.
///
/// What has two dimensions or more is uniform, with a variance of 1 over the
/// product of all but the largest: about as many terms have the sums of a
/// Linear and of a convolution, so that what goes through many layers hardly
/// grows or vanishes. What has fewer is in [0.5, 1.5), as variances and factors
/// of norms have to be. Integers are 0: what they mean is not known. A
/// RunFailed error where memory is short.
llvm::Error makeWeights(llvm::ArrayRef<rt::Program *> programs, uint64_t seed);

} // namespace ax

#endif // AX_LIB_SESSION_RANDOMWEIGHTS_H
