//===- ScaledFactor.cpp - Factors of eight bits times a scale -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Dialect/ScaledFactor.h"

#include "ax/Dialect/Tensors.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace ax;

/// What widens floats of eight bits to `value`; null where something else makes
/// it.
static CastOp wideningOf(Value value) {
  auto cast = value.getDefiningOp<CastOp>();
  return cast && isFloat8(elementType(cast.getOperand())) &&
                 isa<FloatType>(elementType(cast.getResult()))
             ? cast
             : CastOp();
}

/// Sets `scale` and `dim` of numbers that are multiplied with it; false where
/// it differs along more than one dimension.
static bool setScale(ScaledFactor &factor, Value scale) {
  ArrayRef<int64_t> shape = shapeOf(factor.widened), given = shapeOf(scale);
  if (given.size() > shape.size())
    return false;
  factor.scale = scale;
  for (auto [i, size] : llvm::enumerate(given)) {
    if (size == 1)
      continue;
    if (factor.dim)
      return false;
    factor.dim = shape.size() - given.size() + i;
  }
  return true;
}

/// Follows `dim` through a move; false where it cannot be followed.
static bool follow(std::optional<int64_t> &dim, Operation *move) {
  if (!dim)
    return true;
  auto transpose = dyn_cast<TransposeOp>(move);
  if (!transpose)
    return false;
  ArrayRef<int64_t> permutation = transpose.getPermutation();
  dim = llvm::find(permutation, *dim) - permutation.begin();
  return true;
}

std::optional<ScaledFactor> ax::matchScaledFloat8(Value factor) {
  ScaledFactor found;
  Value value = factor;
  while (!found.widened) {
    Operation *op = value.getDefiningOp();
    if (CastOp widened = wideningOf(value)) {
      found.widened = widened;
    } else if (isa_and_present<TransposeOp, ReshapeOp, SliceOp>(op)) {
      found.moves.push_back(op);
      value = op->getOperand(0);
    } else if (auto cast = dyn_cast_or_null<CastOp>(op);
               cast && isa<FloatType>(elementType(cast.getOperand()))) {
      value = cast.getOperand();
    } else if (auto product = dyn_cast_or_null<BinaryOp>(op);
               product && product.getKind() == BinaryKind::mul) {
      Value scale = product.getRhs();
      found.widened = wideningOf(product.getLhs());
      if (!found.widened) {
        scale = product.getLhs();
        found.widened = wideningOf(product.getRhs());
      }
      if (!found.widened ||
          shapeOf(found.widened) != shapeOf(product.getResult()) ||
          !setScale(found, scale))
        return std::nullopt;
    } else {
      return std::nullopt;
    }
  }
  std::reverse(found.moves.begin(), found.moves.end());
  for (Operation *move : found.moves)
    if (!follow(found.dim, move))
      return std::nullopt;
  return found;
}

bool ax::isProductOfFloat8(Operation *op) {
  // Sums of f64 have more digits than a library's of eight bits.
  return isa<LinearOp, DotOp>(op) && !elementType(op->getResult(0)).isF64() &&
         matchScaledFloat8(op->getOperand(0)) &&
         matchScaledFloat8(op->getOperand(1));
}
