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
  if (!cast || !isNarrow(elementType(cast.getOperand())))
    return CastOp();
  Type wide = elementType(cast.getResult());
  bool hasAll = (isa<FloatType>(wide) && !isFloat8(wide)) ||
                (wide.isSignlessInteger(32) &&
                 isInteger8(elementType(cast.getOperand())));
  return hasAll ? cast : CastOp();
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
  CastOp widened;
  while (!widened) {
    value = beforeMoves(value, found.moves);
    Operation *op = value.getDefiningOp();
    widened = wideningOf(value, isFloat8);
    if (widened) {
      found.numbers = widened.getOperand();
    } else if (auto cast = dyn_cast_or_null<CastOp>(op);
               cast && isa<FloatType>(elementType(cast.getOperand()))) {
      value = cast.getOperand();
    } else if (auto product = dyn_cast_or_null<BinaryOp>(op);
               product && product.getKind() == BinaryKind::mul) {
      Value scale = product.getRhs();
      widened = wideningOf(product.getLhs(), isFloat8);
      if (!widened) {
        scale = product.getLhs();
        widened = wideningOf(product.getRhs(), isFloat8);
      }
      if (!widened || shapeOf(widened) != shapeOf(product.getResult()) ||
          !setParameter(found.scale, shapeOf(widened), scale))
        return std::nullopt;
      found.numbers = widened.getOperand();
    } else {
      return std::nullopt;
    }
  }
  return followMoves(found) ? std::optional(found) : std::nullopt;
}

/// By how much a constant of whole numbers, of eight bits less a zero point, is
/// more than what i8 has; nothing of others, and where that does not reach from
/// the least to the largest.
static std::optional<int32_t> offsetOfInteger8(Value value) {
  constexpr int32_t low = -128, high = 127, most = 255;
  auto constant = value.getDefiningOp<ConstantOp>();
  auto dense = constant ? dyn_cast<DenseElementsAttr>(constant.getValue())
                        : DenseElementsAttr();
  if (!dense || dense.empty())
    return std::nullopt;
  int64_t least = std::numeric_limits<int64_t>::max(),
          largest = std::numeric_limits<int64_t>::min();
  auto include = [&](int64_t number) {
    least = std::min(least, number);
    largest = std::max(largest, number);
  };
  if (elementType(value).isSignlessInteger(32)) {
    for (const APInt &number : dense.getValues<APInt>())
      include(number.getSExtValue());
  } else if (isa<FloatType>(elementType(value))) {
    for (const APFloat &number : dense.getValues<APFloat>()) {
      APSInt whole(32, /*isUnsigned=*/false);
      bool isExact = false;
      if (number.convertToInteger(whole, APFloat::rmTowardZero, &isExact) !=
              APFloat::opOK ||
          !isExact)
        return std::nullopt;
      include(whole.getSExtValue());
    }
  } else {
    return std::nullopt;
  }
  if (least < -most || largest > most || largest - least > high - low)
    return std::nullopt;
  int64_t offset = largest > high ? largest - high
                   : least < low  ? least - low
                                  : 0;
  return static_cast<int32_t>(offset);
}

/// `value`, if it is numbers of i32 or of eight bits as floats: those.
static Value integersOf(Value value) {
  if (offsetOfInteger8(value))
    return value;
  auto cast = value.getDefiningOp<CastOp>();
  if (!cast || !isa<FloatType>(elementType(cast.getResult())) ||
      isFloat8(elementType(cast.getResult())))
    return Value();
  Type element = elementType(cast.getOperand());
  if (isInteger8(element))
    return value;
  return element.isSignlessInteger(32) ? cast.getOperand() : Value();
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
  if (CastOp widened = wideningOf(value, isInteger8)) {
    found.numbers = widened.getOperand();
  } else if (std::optional<int32_t> offset = offsetOfInteger8(value)) {
    found.numbers = value;
    found.offset = *offset;
  }
  if (!found.numbers || shapeOf(found.numbers) != shape || !followMoves(found))
    return std::nullopt;
  return found;
}

bool ax::isOfUnsigned(const ScaledFactor &factor) {
  return elementType(factor.numbers).isUnsignedInteger();
}

std::optional<int64_t> ax::integerOf(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  if (!constant || !constant.getValue().isSplat() ||
      !isa<IntegerType>(elementType(value)))
    return std::nullopt;
  return constant.getValue().getSplatValue<APInt>().getSExtValue();
}

/// What a parameter is a view of.
static Value originOf(Value value) {
  while (isa_and_present<ReshapeOp, BroadcastOp, SliceOp, DynamicSliceOp>(
      value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

/// Whether a zero point is one of numbers of eight bits, and of `type`, if that
/// is given.
static bool isInteger8Zero(Value zero, Type type = {}) {
  zero = originOf(zero);
  if (CastOp widened = wideningOf(zero, isInteger8))
    return !type || elementType(widened.getOperand()) == type;
  auto constant = zero.getDefiningOp<ConstantOp>();
  auto numbers = constant ? dyn_cast<DenseElementsAttr>(constant.getValue())
                          : DenseElementsAttr();
  if (!numbers)
    return false;
  auto areBetween = [&](int64_t least, int64_t most) {
    return llvm::all_of(numbers.getValues<APInt>(), [&](const APInt &number) {
      return number.getSExtValue() >= least && number.getSExtValue() <= most;
    });
  };
  bool isSigned = areBetween(-128, 127), isUnsigned = areBetween(0, 255);
  return type ? (type.isUnsignedInteger() ? isUnsigned : isSigned)
              : isSigned || isUnsigned;
}

/// Whether a convolution of such factors is one of their numbers, to which what
/// is around an image, too, is a zero point.
static bool areOfConvolution(const ScaledFactor &x, const ScaledFactor &w,
                             ConvOp conv) {
  bool isCut =
      llvm::any_of(conv.getPads(), [](int64_t pad) { return pad < 0; });
  bool hasZero =
      !x.zero.value || isInteger8Zero(x.zero.value, elementType(x.numbers));
  bool mayPad = hasZero && (!isCut || (isOfUnsigned(x) && !x.zero.value));
  auto isOfFilters = [](const FactorParameter &parameter) {
    return !parameter.dim || *parameter.dim == 0;
  };
  if (x.zero.dim || x.scale.dim || !mayPad || !isOfFilters(w.zero) ||
      !isOfFilters(w.scale))
    return false;
  bool isMiddle = isOfUnsigned(w) ? w.zero.value && integerOf(w.zero.value) ==
                                                        middleOfUnsigned
                                  : !w.zero.value && w.offset == 0;
  // Else all that each window sees is added up, by one more filter for each
  // group.
  auto groups = static_cast<int64_t>(conv.getGroups());
  return isMiddle || groups == 1 || groups == shapeOf(conv.getW())[0];
}

/// Whether dimension `dim` of a factor is summed over.
static bool isSummed(Operation *product, unsigned factor, int64_t dim) {
  if (auto linear = dyn_cast<LinearOp>(product))
    return dim == (factor == 1 ? linear.getTransposeW() ? 1 : 0
                               : tensorType(linear.getX()).getRank() - 1);
  if (auto dot = dyn_cast<DotOp>(product))
    return llvm::is_contained(
        factor == 0 ? dot.getLhsContract() : dot.getRhsContract(), dim);
  return dim != 0;
}

bool ax::isProductOfFloat8(Operation *op) {
  // Sums of f64 have more digits than a library's of eight bits.
  return isa<LinearOp, DotOp>(op) && !elementType(op->getResult(0)).isF64() &&
         matchScaledFloat8(op->getOperand(0)) &&
         matchScaledFloat8(op->getOperand(1));
}

/// How large a product of integers that are multiplied in it is at most, scales
/// aside; nothing where zero points may be any integers.
static std::optional<int64_t> largestTermOf(Operation *product) {
  int64_t largest = 1;
  for (unsigned i : {0U, 1U}) {
    std::optional<ScaledFactor> factor =
        matchScaledInteger(product->getOperand(i));
    Value zero = factor ? factor->zero.value : Value();
    if (!factor || (zero && !isInteger8Zero(zero)))
      return std::nullopt;
    // Less a zero point of another type numbers reach from -255 to 255 + 128.
    bool isOfType = !zero || isInteger8Zero(zero, elementType(factor->numbers));
    largest *=
        (isOfType ? 255 : 255 + middleOfUnsigned) + std::abs(factor->offset);
  }
  return largest;
}

bool ax::isProductOfIntegers(Operation *op) {
  if (!isa<LinearOp, DotOp, ConvOp>(op))
    return false;
  Type sum = elementType(op->getResult(0));
  // Of fewer, what stands behind a product takes longer than it.
  constexpr int64_t fewTerms = 16;
  auto conv = dyn_cast<ConvOp>(op);
  bool isFloat = isa<FloatType>(sum);
  if (isFloat ? !conv && numTermsOf(op) < fewTerms : !sum.isSignlessInteger(32))
    return false;
  std::optional<ScaledFactor> factors[] = {
      matchScaledInteger(op->getOperand(0)),
      matchScaledInteger(op->getOperand(1))};
  for (auto [i, factor] : llvm::enumerate(factors)) {
    if (!factor || (i == 0 && factor->offset != 0))
      return false;
    for (const FactorParameter *parameter : {&factor->zero, &factor->scale})
      if (parameter->dim && isSummed(op, i, *parameter->dim))
        return false;
  }
  if (isFloat) {
    std::optional<int64_t> largest = largestTermOf(op);
    if (!largest ||
        numTermsOf(op) > std::numeric_limits<int32_t>::max() / *largest)
      return false;
  }
  return !conv || areOfConvolution(*factors[0], *factors[1], conv);
}

int64_t ax::numTermsOf(Operation *product) {
  if (auto linear = dyn_cast<LinearOp>(product))
    return linear.getK();
  if (auto conv = dyn_cast<ConvOp>(product))
    return llvm::product_of(shapeOf(conv.getW()).drop_front());
  auto dot = cast<DotOp>(product);
  int64_t terms = 1;
  for (int64_t dim : dot.getLhsContract())
    terms *= shapeOf(dot.getLhs())[dim];
  return terms;
}
