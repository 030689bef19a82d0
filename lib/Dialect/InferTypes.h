//===- InferTypes.h - Shared by the type inference files --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_DIALECT_INFERTYPES_H
#define AX_LIB_DIALECT_INFERTYPES_H

#include "ax/Dialect/Tensors.h"

#include "mlir/IR/Diagnostics.h"

#define AX_INFER(OP)                                                           \
  mlir::LogicalResult ax::OP::inferReturnTypes(                                \
      mlir::MLIRContext *context, std::optional<mlir::Location> location,      \
      OP::Adaptor op, llvm::SmallVectorImpl<mlir::Type> &types)

namespace ax {

inline mlir::Type elementOf(mlir::Value value) {
  return tensorType(value).getElementType();
}

inline mlir::LogicalResult give(llvm::SmallVectorImpl<mlir::Type> &types,
                                llvm::ArrayRef<int64_t> shape,
                                mlir::Type element) {
  types.push_back(mlir::RankedTensorType::get(shape, element));
  return mlir::success();
}

/// Sizes multiply and add without wrapping well below this.
constexpr int64_t maxSize = int64_t(1) << 48;
/// Pads may cut too: maxSize, which stands for more, stays far out of range.
constexpr int64_t maxPad = int64_t(1) << 40;

/// Tensors whose element counts would overflow are refused here, so that no
/// later product can wrap.
mlir::LogicalResult checkedGive(std::optional<mlir::Location> location,
                                llvm::SmallVectorImpl<mlir::Type> &types,
                                llvm::ArrayRef<int64_t> shape,
                                mlir::Type element);

/// All of `values` that are there have the first one's element type.
mlir::LogicalResult checkElements(std::optional<mlir::Location> location,
                                  llvm::ArrayRef<mlir::Value> values);

/// a * b, at most maxSize.
inline int64_t cappedProduct(int64_t a, int64_t b) {
  return a > 0 && b > maxSize / a ? maxSize : a * b;
}

inline bool isPermutation(llvm::ArrayRef<int64_t> dims, int64_t rank) {
  llvm::SmallVector<bool> seen(rank);
  for (int64_t dim : dims) {
    if (dim < 0 || dim >= rank || seen[dim])
      return false;
    seen[dim] = true;
  }
  return static_cast<int64_t>(dims.size()) == rank;
}

inline bool inRange(int64_t dim, int64_t rank) {
  return dim >= 0 && dim < rank;
}

} // namespace ax

#endif // AX_LIB_DIALECT_INFERTYPES_H
