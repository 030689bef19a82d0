//===- ScaledFactor.cpp - Factors of eight bits times a scale -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Dialect/ScaledFactor.h"

#include "ax/Dialect/Tensors.h"

#include "llvm/ADT/STLExtras.h"

#include <limits>

using namespace mlir;
using namespace ax;

/// What widens numbers of which `isNarrow` says that they are such to `value`;
/// null where something else makes it.
static CastOp wideningOf(Value value, bool (*isNarrow)(Type)) {
  auto cast = value.getDefiningOp<CastOp>();
  return cast && isNarrow(elementType(cast.getOperand())) &&
                 !isNarrow(elementType(cast.getResult()))
             ? cast
             : CastOp();
}

/// Sets a parameter of numbers of this shape; false where it differs along more
/// than one dimension.
static bool setParameter(FactorParameter &parameter, ArrayRef<int64_t> shape,
                         Value value) {
  ArrayRef<int64_t> given = shapeOf(value);
  if (given.size() > shape.size())
    return false;
  parameter.value = value;
  for (auto [i, size] : llvm::enumerate(given)) {
    if (size == 1)
      continue;
    if (parameter.dim || size != shape[shape.size() - given.size() + i])
      return false;
    parameter.dim = shape.size() - given.size() + i;
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

/// Both of a factor's parameters behind its moves.
static bool followMoves(ScaledFactor &factor) {
  return llvm::all_of(factor.moves, [&](Operation *move) {
    return follow(factor.zero.dim, move) && follow(factor.scale.dim, move);
  });
}

/// What is before the moves that make `value`, which `moves` has in order then.
static Value beforeMoves(Value value, SmallVectorImpl<Operation *> &moves) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<TransposeOp, ReshapeOp, SliceOp>(op))
      break;
    moves.insert(moves.begin(), op);
    value = op->getOperand(0);
  }
  return value;
}

std::optional<ScaledFactor> ax::matchScaledFloat8(Value factor) {
  ScaledFactor found;
  Value value = factor;
  while (!found.widened) {
    value = beforeMoves(value, found.moves);
    Operation *op = value.getDefiningOp();
    if (CastOp widened = wideningOf(value, isFloat8)) {
      found.widened = widened;
    } else if (auto cast = dyn_cast_or_null<CastOp>(op);
               cast && isa<FloatType>(elementType(cast.getOperand()))) {
      value = cast.getOperand();
    } else if (auto product = dyn_cast_or_null<BinaryOp>(op);
               product && product.getKind() == BinaryKind::mul) {
      Value scale = product.getRhs();
      found.widened = wideningOf(product.getLhs(), isFloat8);
      if (!found.widened) {
        scale = product.getLhs();
        found.widened = wideningOf(product.getRhs(), isFloat8);
      }
      if (!found.widened ||
          shapeOf(found.widened) != shapeOf(product.getResult()) ||
          !setParameter(found.scale, shapeOf(found.widened), scale))
        return std::nullopt;
    } else {
      return std::nullopt;
    }
  }
  return followMoves(found) ? std::optional(found) : std::nullopt;
}

/// `value`, if it is numbers of i32 or of eight bits as floats: those.
static Value integersOf(Value value) {
  auto cast = value.getDefiningOp<CastOp>();
  if (!cast || !isa<FloatType>(elementType(cast.getResult())))
    return Value();
  Type element = elementType(cast.getOperand());
  return isInteger8(element)             ? value
         : element.isSignlessInteger(32) ? cast.getOperand()
                                         : Value();
}

std::optional<ScaledFactor> ax::matchScaledInteger(Value factor) {
  ScaledFactor found;
  Value value = beforeMoves(factor, found.moves);
  ArrayRef<int64_t> shape = shapeOf(value);
  if (isa<FloatType>(elementType(value))) {
    Value integers = integersOf(value);
    auto product = value.getDefiningOp<BinaryOp>();
    if (!integers && product && product.getKind() == BinaryKind::mul) {
      Value scale = product.getRhs();
      integers = integersOf(product.getLhs());
      if (!integers) {
        scale = product.getLhs();
        integers = integersOf(product.getRhs());
      }
      if (!integers || !setParameter(found.scale, shape, scale))
        return std::nullopt;
    }
    if (!integers)
      return std::nullopt;
    value = integers;
  }
  if (auto difference = value.getDefiningOp<BinaryOp>()) {
    if (difference.getKind() != BinaryKind::sub ||
        !elementType(value).isSignlessInteger(32) ||
        !setParameter(found.zero, shape, difference.getRhs()))
      return std::nullopt;
    value = difference.getLhs();
  }
  found.widened = wideningOf(value, isInteger8);
  if (!found.widened || shapeOf(found.widened) != shape || !followMoves(found))
    return std::nullopt;
  return found;
}

bool ax::isProductOfFloat8(Operation *op) {
  // Sums of f64 have more digits than a library's of eight bits.
  return isa<LinearOp, DotOp>(op) && !elementType(op->getResult(0)).isF64() &&
         matchScaledFloat8(op->getOperand(0)) &&
         matchScaledFloat8(op->getOperand(1));
}

bool ax::isProductOfIntegers(Operation *op) {
  if (!isa<LinearOp, DotOp>(op))
    return false;
  Type sum = elementType(op->getResult(0));
  // Numbers of eight bits less a zero point are at most 255.
  constexpr int64_t mostTerms =
      std::numeric_limits<int32_t>::max() / (255 * 255);
  bool fits = sum.isSignlessInteger(32) ||
              (isa<FloatType>(sum) && numTermsOf(op) <= mostTerms);
  return fits && matchScaledInteger(op->getOperand(0)) &&
         matchScaledInteger(op->getOperand(1));
}

int64_t ax::numTermsOf(Operation *product) {
  if (auto linear = dyn_cast<LinearOp>(product))
    return linear.getK();
  auto dot = cast<DotOp>(product);
  int64_t terms = 1;
  for (int64_t dim : dot.getLhsContract())
    terms *= shapeOf(dot.getLhs())[dim];
  return terms;
}
