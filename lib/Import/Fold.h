//===- Fold.h - What emission and folding share -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_IMPORT_FOLD_H
#define AX_LIB_IMPORT_FOLD_H

#include "ax/Support/HostTensor.h"

#include "mlir/IR/BuiltinAttributes.h"

namespace ax::import {

/// Above this, constants whose elements are all the same stay one number.
inline constexpr int64_t minUniformElements = 256;

/// A splat of `type` with the element of the scalar `element`.
mlir::DenseElementsAttr toSplat(mlir::RankedTensorType type,
                                const HostTensor &element);

} // namespace ax::import

#endif // AX_LIB_IMPORT_FOLD_H
