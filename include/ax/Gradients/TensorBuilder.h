//===- TensorBuilder.h - Short names for ax operations ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What gradients, losses and optimizers are made of.
//
//===----------------------------------------------------------------------===//
#ifndef AX_GRADIENTS_TENSORBUILDER_H
#define AX_GRADIENTS_TENSORBUILDER_H

#include "ax/Dialect/Tensors.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace ax {

class TensorBuilder {
public:
  using Value = mlir::Value;
  using Dims = llvm::ArrayRef<int64_t>;

  TensorBuilder(mlir::Location loc, mlir::OpBuilder &builder)
      : b(loc, builder) {}

  /// What is made from here on is called so, as if it were a node.
  void nameOps(const llvm::Twine &name) {
    b.setLoc(mlir::NameLoc::get(b.getStringAttr(name)));
  }

  // Element-wise, with broadcasting.
  Value binary(BinaryKind kind, Value x, Value y) {
    return BinaryOp::create(b, kind, x, y);
  }
  Value add(Value x, Value y) { return binary(BinaryKind::add, x, y); }
  Value sub(Value x, Value y) { return binary(BinaryKind::sub, x, y); }
  Value mul(Value x, Value y) { return binary(BinaryKind::mul, x, y); }
  Value div(Value x, Value y) { return binary(BinaryKind::div, x, y); }
  Value add(Value x, double y) { return add(x, number(x, y)); }
  Value mul(Value x, double y) { return mul(x, number(x, y)); }
  Value unary(UnaryKind kind, Value x) { return UnaryOp::create(b, kind, x); }
  Value neg(Value x) { return unary(UnaryKind::neg, x); }
  Value compare(CompareKind kind, Value x, Value y) {
    return CompareOp::create(b, kind, x, y);
  }
  Value compare(CompareKind kind, Value x, double y) {
    return compare(kind, x, number(x, y));
  }
  Value select(Value condition, Value x, Value y) {
    return SelectOp::create(b, condition, x, y);
  }
  Value select(Value condition, Value x, double y) {
    return select(condition, x, number(x, y));
  }
  Value cast(Value x, mlir::Type element);
  /// Returns x in f32 if its type is narrower: for statistics.
  Value wide(Value x);
  /// Returns 1 where `condition` holds, 0 elsewhere.
  Value indicator(Value condition, mlir::Type element) {
    return cast(condition, element);
  }

  // Constants.
  /// A scalar of the element type of `like`.
  Value number(Value like, double value);
  Value splat(Dims shape, mlir::Type element, double value);
  Value zerosLike(Value like) {
    return splat(shapeOf(like), elementType(like), 0);
  }
  /// The index along `dim`, i64, all other extents 1.
  Value indexAlong(int64_t dim, int64_t size, int64_t rank);

  /// Returns by index along the first dimension of `type`, all other extents 1,
  /// whether it is one of `rows`; null when there are none.
  Value isRowOf(mlir::RankedTensorType type, Dims rows);

  // Shapes.
  Value reshape(Value x, Dims shape) {
    return reshapeTo(b, b.getLoc(), x, shape);
  }
  Value transpose(Value x, Dims permutation) {
    return transposeTo(b, b.getLoc(), x, permutation);
  }
  Value broadcast(Value x, Dims shape);
  /// `count` elements of `dim` from `start`.
  Value slice(Value x, int64_t dim, int64_t start, int64_t count);
  Value pad(Value x, Dims low, Dims high);

  // Reductions.
  Value reduce(ReduceOpKind kind, Value x, Dims dims, bool keepDims = true);
  Value sum(Value x, Dims dims, bool keepDims = true) {
    return reduce(ReduceOpKind::sum, x, dims, keepDims);
  }
  /// Undoes broadcasting to the shape of `x`.
  Value sumTo(Value x, Dims shape);
  /// The result of a reduction over `dims`, with them as 1.
  Value keepDims(Value reduced, Dims operandShape, Dims dims);

  mlir::ImplicitLocOpBuilder b;
};

/// The dimensions first, ..., last - 1.
inline llvm::SmallVector<int64_t> dimsFrom(int64_t first, int64_t last) {
  return llvm::to_vector(llvm::seq<int64_t>(first, last));
}

} // namespace ax

#endif // AX_GRADIENTS_TENSORBUILDER_H
