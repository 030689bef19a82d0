//===- Match.cpp - What patterns ask about values ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Match.h"

#include "ax/Dialect/OpTraits.h"
#include "ax/Dialect/Random.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"

#include <cmath>

using namespace mlir;
using namespace ax;

bool ax::isSplat(Value value, double number) {
  std::optional<double> found = splatNumber(value);
  if (!found)
    return false;
  auto type = dyn_cast<FloatType>(elementType(value));
  double tolerance = type && type.getWidth() < 32 ? 1e-2 : 1e-6;
  return std::abs(*found - number) <= tolerance * std::abs(number);
}

bool ax::isExactSplat(Value value, double number) {
  std::optional<double> found = splatNumber(value);
  return found && *found == number;
}

bool ax::isWeight(Value value) {
  // Weights come out of few operations; what needs more is no weight.
  constexpr size_t limit = 64;
  llvm::SmallPtrSet<Operation *, 16> seen;
  SmallVector<Value> open = {value};
  while (!open.empty()) {
    Operation *op = open.pop_back_val().getDefiningOp();
    if (!op || seen.size() > limit || isRandom(op))
      return false;
    if (!seen.insert(op).second || isSource(op) || isa<IotaOp>(op))
      continue;
    if (op->getNumOperands() == 0 || op->getNumRegions() != 0)
      return false;
    llvm::append_range(open, op->getOperands());
  }
  return true;
}

/// Whether `weight` is made of integers of at most eight bits, but for a few.
static bool isOfFewBits(Value weight) {
  if (!isWeight(weight))
    return false;
  constexpr unsigned few = 8;
  // Of two bits there are four in each.
  int64_t least = tensorType(weight).getNumElements() / 4;
  llvm::SetVector<Value> made;
  made.insert(weight);
  for (size_t i = 0; i < made.size(); ++i) {
    auto type = dyn_cast<IntegerType>(elementType(made[i]));
    Operation *op = made[i].getDefiningOp();
    if (isSource(op) && type && type.getWidth() <= few &&
        tensorType(made[i]).getNumElements() >= least)
      return true;
    made.insert_range(op->getOperands());
  }
  return false;
}

bool ax::isRowByFewBits(Operation *op) {
  auto linear = dyn_cast<LinearOp>(op);
  if (!linear)
    return false;
  RankedTensorType rows = tensorType(linear.getX());
  return rows.getNumElements() == rows.getShape().back() &&
         isOfFewBits(linear.getW());
}

bool ax::isRoundedByFewBits(Operation *op) {
  auto linear = dyn_cast<LinearOp>(op);
  if (!linear)
    return false;
  Operation *maker = linear.getX().getDefiningOp();
  while (isa_and_nonnull<ReshapeOp, CastOp>(maker))
    maker = maker->getOperand(0).getDefiningOp();
  return isa_and_nonnull<FakeQuantizeOp>(maker) && isOfFewBits(linear.getW());
}

Value ax::weightOfShape(OpBuilder &builder, Location loc, Value value,
                        ArrayRef<int64_t> shape) {
  if (constantElements(value) && tensorType(value).getRank() == 0)
    if (std::optional<double> number = splatNumber(value))
      return createSplat(builder, loc,
                         RankedTensorType::get(shape, elementType(value)),
                         *number);
  ArrayRef<int64_t> stripped = shapeOf(value);
  while (stripped.size() > shape.size() && stripped.front() == 1)
    stripped = stripped.drop_front();
  if (stripped != shape || !isWeight(value))
    return {};
  return reshapeTo(builder, loc, value, shape);
}

UnaryOp ax::unaryOf(Value value, UnaryKind kind) {
  auto op = value.getDefiningOp<UnaryOp>();
  return op && op.getKind() == kind ? op : UnaryOp();
}

BinaryOp ax::binaryOf(Value value, BinaryKind kind) {
  auto op = value.getDefiningOp<BinaryOp>();
  return op && op.getKind() == kind ? op : BinaryOp();
}

std::optional<WithNumber> ax::matchScaled(Value value) {
  auto op = value.getDefiningOp<BinaryOp>();
  if (!op ||
      (op.getKind() != BinaryKind::mul && op.getKind() != BinaryKind::div))
    return std::nullopt;
  // A constant that makes the value larger does more than scale it.
  if (std::optional<double> number = splatNumber(op.getRhs());
      number && shapeOf(op.getLhs()) == shapeOf(value)) {
    if (op.getKind() == BinaryKind::mul)
      return WithNumber{op.getLhs(), *number};
    if (*number != 0)
      return WithNumber{op.getLhs(), 1 / *number};
  }
  if (std::optional<double> number = splatNumber(op.getLhs());
      number && op.getKind() == BinaryKind::mul &&
      shapeOf(op.getRhs()) == shapeOf(value))
    return WithNumber{op.getRhs(), *number};
  return std::nullopt;
}

std::optional<WithNumber> ax::matchShifted(Value value) {
  auto op = value.getDefiningOp<BinaryOp>();
  if (!op ||
      (op.getKind() != BinaryKind::add && op.getKind() != BinaryKind::sub))
    return std::nullopt;
  bool isAdd = op.getKind() == BinaryKind::add;
  if (std::optional<double> number = splatNumber(op.getRhs());
      number && shapeOf(op.getLhs()) == shapeOf(value))
    return WithNumber{op.getLhs(), isAdd ? *number : -*number};
  if (std::optional<double> number = splatNumber(op.getLhs());
      number && isAdd && shapeOf(op.getRhs()) == shapeOf(value))
    return WithNumber{op.getRhs(), *number};
  return std::nullopt;
}

Value ax::matchSquare(Value value) {
  if (BinaryOp product = binaryOf(value, BinaryKind::mul))
    return product.getLhs() == product.getRhs() ? product.getLhs() : Value();
  BinaryOp power = binaryOf(value, BinaryKind::pow);
  if (power && isExactSplat(power.getRhs(), 2) &&
      shapeOf(power.getLhs()) == shapeOf(value))
    return power.getLhs();
  return Value();
}

SmallVector<int64_t> ax::keptShape(const Mean &mean) {
  SmallVector<int64_t> shape(shapeOf(mean.operand));
  for (int64_t dim : mean.dims)
    shape[dim] = 1;
  return shape;
}

std::optional<Mean> ax::matchMean(Value value) {
  // The reduced dimensions may have been put back by a reshape.
  if (auto reshape = value.getDefiningOp<ReshapeOp>()) {
    std::optional<Mean> mean = matchMean(reshape.getOperand());
    if (!mean || mean->keepDims)
      return std::nullopt;
    mean->keepDims = true;
    bool restores = shapeOf(reshape) == ArrayRef<int64_t>(keptShape(*mean));
    return restores ? mean : std::nullopt;
  }
  // Of narrow floats it is made in f32.
  if (auto narrowed = value.getDefiningOp<CastOp>();
      narrowed && isNarrowFloat(elementType(value))) {
    std::optional<Mean> mean = matchMean(narrowed.getOperand());
    auto widened = mean ? mean->operand.getDefiningOp<CastOp>() : CastOp();
    if (!widened || elementType(widened.getOperand()) != elementType(value))
      return std::nullopt;
    mean->operand = widened.getOperand();
    return mean;
  }
  std::optional<WithNumber> scaled = matchScaled(value);
  if (!scaled)
    return std::nullopt;
  auto sum = scaled->value.getDefiningOp<ReduceOp>();
  if (!sum || sum.getKind() != ReduceOpKind::sum)
    return std::nullopt;
  double count = 1;
  for (int64_t dim : sum.getDims())
    count *= static_cast<double>(shapeOf(sum.getOperand())[dim]);
  if (std::abs(scaled->number * count - 1) > 1e-6)
    return std::nullopt;
  return Mean{sum.getOperand(), sum.getDims(), sum.getKeepDims()};
}

Value ax::recreate(OpBuilder &builder, Operation *op, ArrayRef<Value> operands,
                   ArrayRef<int64_t> shape) {
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(operands);
  state.addTypes(RankedTensorType::get(shape, elementType(op->getResult(0))));
  state.addAttributes(op->getDiscardableAttrDictionary().getValue());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  return builder.create(state)->getResult(0);
}

std::optional<DimGroups> ax::matchDims(ArrayRef<int64_t> lhs,
                                       ArrayRef<int64_t> rhs) {
  DimGroups groups;
  int64_t i = 0, j = 0;
  int64_t lhsRank = lhs.size(), rhsRank = rhs.size();
  while (i < lhsRank && j < rhsRank) {
    int64_t lhsSize = lhs[i++], rhsSize = rhs[j++];
    while (lhsSize != rhsSize) {
      if (lhsSize == 0 || rhsSize == 0)
        return std::nullopt;
      if (lhsSize < rhsSize) {
        if (i == lhsRank)
          return std::nullopt;
        lhsSize *= lhs[i++];
      } else {
        if (j == rhsRank)
          return std::nullopt;
        rhsSize *= rhs[j++];
      }
    }
    groups.emplace_back(i, j);
  }
  // What is left are dimensions of size 1.
  while (i < lhsRank)
    if (lhs[i++] != 1)
      return std::nullopt;
  while (j < rhsRank)
    if (rhs[j++] != 1)
      return std::nullopt;
  if (groups.empty())
    groups.emplace_back(lhsRank, rhsRank);
  groups.back() = {lhsRank, rhsRank};
  return groups;
}
