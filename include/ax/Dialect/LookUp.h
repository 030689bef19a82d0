//===- LookUp.h - Matrices that are looked up -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_DIALECT_LOOKUP_H
#define AX_DIALECT_LOOKUP_H

#include "ax/Dialect/Tensors.h"

namespace ax {

/// Whether `op` gathers whole matrices along their first dimension, as those of
/// the experts that tokens choose; false of null.
inline bool looksUpMatrices(mlir::Operation *op) {
  auto gather = llvm::dyn_cast_or_null<GatherOp>(op);
  return gather && gather.getAxis() == 0 &&
         tensorType(gather.getOperand()).getRank() > 2;
}

} // namespace ax

#endif // AX_DIALECT_LOOKUP_H
