//===- Tensors.h - Short questions and short ways to make -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_DIALECT_TENSORS_H
#define AX_DIALECT_TENSORS_H

#include "ax/Dialect/Ax.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"

#include <optional>

namespace ax {

inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) {
  return tensorType(value).getShape();
}
inline mlir::Type elementType(mlir::Value value) {
  return tensorType(value).getElementType();
}

/// The elements of a constant that stands in the IR; null otherwise.
mlir::DenseElementsAttr constantElements(mlir::Value value);

/// The number that every element of `value` has, seen through reshapes,
/// transposes, slices, broadcasts and casts that keep it exact.
std::optional<double> splatNumber(mlir::Value value);

/// A constant of `type` filled with `number`.
mlir::Value createSplat(mlir::OpBuilder &builder, mlir::Location loc,
                        mlir::RankedTensorType type, double number);

/// `value` under another shape; itself when it has the shape.
mlir::Value reshapeTo(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::Value value, llvm::ArrayRef<int64_t> shape);
/// `value` transposed; itself when the permutation does nothing.
mlir::Value transposeTo(mlir::OpBuilder &builder, mlir::Location loc,
                        mlir::Value value, llvm::ArrayRef<int64_t> permutation);
bool isIdentity(llvm::ArrayRef<int64_t> permutation);
/// Whether a transpose of such a shape leaves all elements in their row-major
/// order, as it moves no dimension but those of size 1: it is a reshape.
bool keepsOrder(llvm::ArrayRef<int64_t> shape,
                llvm::ArrayRef<int64_t> permutation);

} // namespace ax

#endif // AX_DIALECT_TENSORS_H
