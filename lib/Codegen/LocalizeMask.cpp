//===- LocalizeMask.cpp - Padding that must not be summed -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Localizer.h"

#include <limits>

using namespace mlir;

namespace ax::codegen {

static APInt extremeInt(IntegerType type, bool largest) {
  unsigned width = type.getWidth();
  if (width == 1 || type.isUnsigned())
    return largest ? APInt::getMaxValue(width) : APInt::getMinValue(width);
  return largest ? APInt::getSignedMaxValue(width)
                 : APInt::getSignedMinValue(width);
}

/// What does not change the reduction that `op` makes over elements of type
/// `element`.
static Attribute neutralOf(Operation *op, Type element) {
  auto reduce = dyn_cast<ReduceOp>(op);
  ReduceOpKind kind = reduce ? reduce.getKind() : ReduceOpKind::sum;
  bool isExtreme = kind == ReduceOpKind::max || kind == ReduceOpKind::min;
  bool largest = kind == ReduceOpKind::min;
  double one = kind == ReduceOpKind::prod ? 1 : 0;
  if (auto integer = dyn_cast<IntegerType>(element))
    return IntegerAttr::get(integer, isExtreme
                                         ? extremeInt(integer, largest)
                                         : APInt(integer.getWidth(), one != 0));
  double infinity = std::numeric_limits<double>::infinity();
  return FloatAttr::get(element,
                        isExtreme ? (largest ? infinity : -infinity) : one);
}

Value Localizer::maskDim(Value value, int64_t dim,
                         const sharding::DimLayout &layout, Value neutral) {
  Value index = globalIndex(layout, dim, tensorType(value).getRank());
  Value valid = compare(CompareKind::lt, index, constantInt(layout.size()));
  return select(valid, value, neutral);
}

llvm::Error Localizer::maskReduced(Operation *op) {
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  if (!ruled)
    return llvm::Error::success();
  bool uneven = false;
  for (Value operand : op->getOperands())
    for (const sharding::DimLayout &dim : layoutOf(operand).dims)
      uneven |= !sharding::digitsOf(dim);
  if (!uneven)
    return llvm::Error::success();

  sharding::Rule rule = ruled.getShardingRule();
  for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
    sharding::Layout layout = layoutOf(operand);
    for (auto [dim, factors] : llvm::enumerate(rule.operands[number])) {
      if (sharding::digitsOf(layout.dims[dim]) || factors.size() != 1)
        continue;
      if (rule.factors[factors[0]].kind != sharding::FactorKind::Reduction)
        continue;
      // A state's padding is zero already, which is what contractions need.
      if (!isa<ReduceOp>(op) && operand.getDefiningOp<LoadOp>())
        continue;
      Value local = mapping.lookup(operand);
      Type element = tensorType(local).getElementType();
      Value neutral = constant(neutralOf(op, element));
      mapping.map(operand, maskDim(local, dim, layout.dims[dim], neutral));
    }
  }
  return llvm::Error::success();
}

} // namespace ax::codegen
