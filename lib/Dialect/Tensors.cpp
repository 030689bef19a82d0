//===- Tensors.cpp - Short questions and short ways to make ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Dialect/Tensors.h"

#include <cmath>

using namespace mlir;
using namespace ax;

DenseElementsAttr ax::constantElements(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  return constant ? dyn_cast<DenseElementsAttr>(constant.getValue())
                  : DenseElementsAttr();
}

static std::optional<double> splatOf(DenseElementsAttr elements) {
  if (!elements || !elements.isSplat())
    return std::nullopt;
  Type type = elements.getElementType();
  if (isa<FloatType>(type))
    return elements.getSplatValue<APFloat>().convertToDouble();
  if (auto integer = dyn_cast<IntegerType>(type)) {
    APInt number = elements.getSplatValue<APInt>();
    bool isSigned = !integer.isUnsigned() && integer.getWidth() > 1;
    return isSigned ? static_cast<double>(number.getSExtValue())
                    : static_cast<double>(number.getZExtValue());
  }
  return std::nullopt;
}

/// Whether `number` of type `from` is the same number in `to`.
static bool survivesCast(double number, Type to) {
  if (auto type = dyn_cast<FloatType>(to)) {
    APFloat value(number);
    bool loses = false;
    value.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                  &loses);
    return !loses;
  }
  if (auto type = dyn_cast<IntegerType>(to)) {
    if (number != std::trunc(number) || std::abs(number) > 1e15)
      return false;
    if (type.getWidth() == 1)
      return number == 0 || number == 1;
    double range = std::ldexp(1.0, static_cast<int>(type.getWidth()) -
                                       (type.isUnsigned() ? 0 : 1));
    return number < range && number >= (type.isUnsigned() ? 0.0 : -range);
  }
  return false;
}

std::optional<double> ax::splatNumber(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (isView(op)) {
      value = op->getOperand(0);
      continue;
    }
    if (isa<CastOp>(op)) {
      std::optional<double> number = splatNumber(op->getOperand(0));
      if (number && survivesCast(*number, elementType(value)))
        return number;
      return std::nullopt;
    }
    return splatOf(constantElements(value));
  }
  return std::nullopt;
}

Value ax::createSplat(OpBuilder &builder, Location loc, RankedTensorType type,
                      double number) {
  Attribute element;
  if (auto floatType = dyn_cast<FloatType>(type.getElementType()))
    element = builder.getFloatAttr(floatType, number);
  else
    element = builder.getIntegerAttr(type.getElementType(),
                                     static_cast<int64_t>(number));
  return ConstantOp::create(builder, loc,
                            DenseElementsAttr::get(type, element));
}

Value ax::reshapeTo(OpBuilder &builder, Location loc, Value value,
                    ArrayRef<int64_t> shape) {
  if (shapeOf(value) == shape)
    return value;
  auto type = RankedTensorType::get(shape, elementType(value));
  return ReshapeOp::create(builder, loc, type, value);
}

bool ax::isIdentity(ArrayRef<int64_t> permutation) {
  for (auto [i, dim] : llvm::enumerate(permutation))
    if (dim != static_cast<int64_t>(i))
      return false;
  return true;
}

bool ax::keepsOrder(ArrayRef<int64_t> shape, ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> moved;
  for (int64_t dim : permutation)
    if (shape[dim] != 1)
      moved.push_back(dim);
  return llvm::is_sorted(moved);
}

Value ax::transposeTo(OpBuilder &builder, Location loc, Value value,
                      ArrayRef<int64_t> permutation) {
  if (isIdentity(permutation))
    return value;
  return TransposeOp::create(builder, loc, value, permutation);
}
