//===- Match.h - What patterns ask about values -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shared by the passes; all questions are cheap and look only upwards.
//
//===----------------------------------------------------------------------===//
#ifndef AX_PASSES_MATCH_H
#define AX_PASSES_MATCH_H

#include "ax/Dialect/Tensors.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/PatternMatch.h"

#include <optional>

namespace ax {

/// Whether every element of `value` is `number`, but for the rounding of a
/// float (relative 1e-6 in f32, 1e-2 in narrower types).
bool isSplat(mlir::Value value, double number);
bool isExactSplat(mlir::Value value, double number);

/// Whether a value is computed from states and constants only: known before any
/// input.
bool isWeight(mlir::Value value);

/// Whether `op` multiplies one row by weights that are made of integers of
/// eight bits or less. Each of these is read once: to round it for that would
/// take longer than the product.
bool isRowByFewBits(mlir::Operation *op);

/// Whether `op` multiplies rows that are rounded to eight bits by such weights,
/// which processors multiply as they are.
bool isRoundedByFewBits(mlir::Operation *op);

/// A weight that means the same under `shape`: leading dimensions of size 1
/// are dropped, a single number fills it. Null for all else.
mlir::Value weightOfShape(mlir::OpBuilder &builder, mlir::Location loc,
                          mlir::Value value, llvm::ArrayRef<int64_t> shape);

/// The operation that gives `value` when it has the kind.
UnaryOp unaryOf(mlir::Value value, UnaryKind kind);
BinaryOp binaryOf(mlir::Value value, BinaryKind kind);

/// The two operands of a commutative `kind`, the one `first` accepts in front;
/// nothing when `value` is something else or neither is accepted.
template <typename Accept>
std::optional<std::pair<mlir::Value, mlir::Value>>
matchCommutative(mlir::Value value, BinaryKind kind, Accept &&first) {
  BinaryOp op = binaryOf(value, kind);
  if (!op)
    return std::nullopt;
  if (first(op.getLhs()))
    return std::make_pair(op.getLhs(), op.getRhs());
  if (first(op.getRhs()))
    return std::make_pair(op.getRhs(), op.getLhs());
  return std::nullopt;
}

/// The other operand of a product (quotient, sum) with a constant, and the
/// constant: x c, c x, x / c give {x, c or 1 / c}; x + c, c + x, x - c give
/// {x, c or -c}.
struct WithNumber {
  mlir::Value value;
  double number;
};
std::optional<WithNumber> matchScaled(mlir::Value value);
std::optional<WithNumber> matchShifted(mlir::Value value);

/// x x, or x to the power 2: x.
mlir::Value matchSquare(mlir::Value value);

/// The mean of `operand` over `dims` (sorted).
struct Mean {
  mlir::Value operand;
  llvm::ArrayRef<int64_t> dims;
  bool keepDims;
};
std::optional<Mean> matchMean(mlir::Value value);
/// The operand's shape with 1 for the reduced dimensions.
llvm::SmallVector<int64_t> keptShape(const Mean &mean);

/// The one result of `op` (element-wise) on other operands, of another shape.
mlir::Value recreate(mlir::OpBuilder &builder, mlir::Operation *op,
                     llvm::ArrayRef<mlir::Value> operands,
                     llvm::ArrayRef<int64_t> shape);
/// Groups of consecutive dimensions of two shapes that hold the same elements,
/// as fine as possible: {lhs end, rhs end} of each group; nothing when the
/// shapes have elements of different number or none.
using DimGroups = llvm::SmallVector<std::pair<int64_t, int64_t>>;
std::optional<DimGroups> matchDims(llvm::ArrayRef<int64_t> lhs,
                                   llvm::ArrayRef<int64_t> rhs);

} // namespace ax

#endif // AX_PASSES_MATCH_H
