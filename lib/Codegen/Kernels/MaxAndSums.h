//===- MaxAndSums.h - Sums of exp of what is below the largest --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_CODEGEN_KERNELS_MAXANDSUMS_H
#define AX_CODEGEN_KERNELS_MAXANDSUMS_H

#include "ax/Local/Local.h"
#include "llvm/ADT/DenseSet.h"

namespace ax::codegen {

/// m = max x, and the sum of e = exp(x - m) over the same dimensions, as in a
/// softmax, a log-softmax, or a loss made of one.
struct MaxAndSumOps {
  ReduceOp max, sum;
  mlir::Operation *exp;
};

/// Returns those of a decomposed fusion that had better be found together, of
/// f32. Where e is `kept` in memory that a block has, it is not.
llvm::SmallVector<MaxAndSumOps>
findMaxAndSums(FusionOp fusion, const llvm::DenseSet<mlir::Operation *> &kept);

} // namespace ax::codegen

#endif // AX_CODEGEN_KERNELS_MAXANDSUMS_H
