//===- ShapeOf.h - The shape of a tensor ------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_DIALECT_SHAPEOF_H
#define AX_LIB_DIALECT_SHAPEOF_H

#include "ax/Dialect/Ax.h"

namespace ax {

inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) {
  return tensorType(value).getShape();
}

} // namespace ax

#endif // AX_LIB_DIALECT_SHAPEOF_H
