//===- CountedNumbers.cpp - Numbers of results, seen through --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exporters write a number of results in many ways: cut out of a shape, put
// into a list of sizes, cast, added to 0. Two of them are the same number when
// they come from the same place, or are made alike.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

#include "ax/Dialect/Ax.h"

#include "llvm/ADT/SetVector.h"

using namespace ax;
using namespace ax::import;

static std::pair<Value, int64_t> originOf(Emitter &b, Value value, int64_t at,
                                          bool fromCount = true);

/// Whether it is a constant that is `number` everywhere.
static bool isEverywhere(Emitter &b, Value value, int64_t number) {
  if (!value.getDefiningOp<ConstantOp>())
    return false;
  std::optional<HostTensor> known = b.knownValue(value);
  if (!known || isFloat(known->getType()))
    return false;
  for (int64_t i = 0; i < known->numElements(); ++i)
    if (known->getInt(i) != number)
      return false;
  return true;
}

/// What 0 is added to, as TorchScript writes where the first part of a split
/// ends; nothing of other sums.
static Value unchangedBy(Emitter &b, BinaryOp sum) {
  for (int side : {0, 1})
    if (sum.getKind() == BinaryKind::add &&
        isEverywhere(b, sum->getOperand(side), 0) &&
        sum->getOperand(1 - side).getType() == sum.getType())
      return sum->getOperand(1 - side);
  return {};
}

/// Whether element `at` is that of the list in `select`, which chooses another
/// where it is -1, as TorchScript writes sizes that stay: a number of results
/// is none.
static bool isGivenSize(Emitter &b, SelectOp select, int64_t at) {
  auto isUnset = select.getCondition().getDefiningOp<CompareOp>();
  Value list = select.getOnFalse();
  if (!isUnset || isUnset.getKind() != CompareKind::eq ||
      isUnset.getLhs() != list)
    return false;
  return isEverywhere(b, isUnset.getRhs(), -1) &&
         originOf(b, list, at, /*fromCount=*/false)
             .first.getDefiningOp<AtMostOp>();
}

/// Whether the type has all numbers of results, and sizes; exporters write
/// either.
static bool canCount(DType type) {
  return type == DType::I64 || type == DType::I32;
}

/// Where element `at` of a short list of numbers comes from; `fromCount`: if
/// that is a number of results, what it counts.
static std::pair<Value, int64_t> originOf(Emitter &b, Value value, int64_t at,
                                          bool fromCount) {
  while (mlir::Operation *op = value.getDefiningOp()) {
    bool isList = Emitter::rankOf(value) == 1;
    if (mlir::isa<AtMostOp>(op) && !fromCount)
      break;
    if (mlir::isa<ReshapeOp, AtMostOp>(op) ||
        (mlir::isa<CastOp>(op) && canCount(Emitter::typeOf(value)) &&
         canCount(Emitter::typeOf(op->getOperand(0))))) {
      value = op->getOperand(0);
    } else if (auto slice = mlir::dyn_cast<SliceOp>(op); slice && isList) {
      at = slice.getStarts()[0] + at * slice.getSteps()[0];
      value = slice.getOperand();
    } else if (auto concat = mlir::dyn_cast<ConcatOp>(op); concat && isList) {
      for (Value operand : concat.getOperands()) {
        value = operand;
        if (at < Emitter::numElementsOf(operand))
          break;
        at -= Emitter::numElementsOf(operand);
      }
    } else if (auto select = mlir::dyn_cast<SelectOp>(op);
               select && isList && isGivenSize(b, select, at)) {
      value = select.getOnFalse();
    } else if (auto sum = mlir::dyn_cast<BinaryOp>(op);
               sum && unchangedBy(b, sum)) {
      value = unchangedBy(b, sum);
    } else {
      break;
    }
  }
  return {value, at};
}

std::optional<std::string> Emitter::countBehind(Value value) {
  if (demand(value) || !demand(value, 0))
    return std::nullopt;
  llvm::SetVector<Value> behind;
  behind.insert(value);
  for (size_t i = 0; i < behind.size(); ++i) {
    mlir::Operation *op = behind[i].getDefiningOp();
    // A size that is made of such numbers is no other.
    if (mlir::isa_and_nonnull<AtMostOp>(op) && !demand(op->getOperand(0), 0))
      return nodeOf(op->getLoc());
    if (op)
      behind.insert(op->operand_begin(), op->operand_end());
  }
  return std::nullopt;
}

std::optional<int64_t> Emitter::elementOf(Value list, int64_t at) {
  std::tie(list, at) = originOf(*this, list, at);
  std::optional<HostTensor> known = demand(list);
  if (!known || isFloat(known->getType()))
    return std::nullopt;
  return known->getInt(at);
}

std::optional<int64_t> Emitter::distance(Value from, Value to, int64_t at) {
  auto [sum, sumAt] = originOf(*this, to, at);
  auto add = sum.getDefiningOp<BinaryOp>();
  if (!add || add.getKind() != BinaryKind::add)
    return std::nullopt;
  for (int side : {0, 1}) {
    Value same = add->getOperand(side), number = add->getOperand(1 - side);
    auto placeIn = [&, place = sumAt](Value operand) {
      return numElementsOf(operand) == 1 ? 0 : place;
    };
    std::optional<int64_t> added = elementOf(number, placeIn(number));
    if (added &&
        originOf(*this, same, placeIn(same)) == originOf(*this, from, at))
      return added;
  }
  return std::nullopt;
}

bool Emitter::isFixed(Value value, int64_t at) {
  std::tie(value, at) = originOf(*this, value, at);
  if (demand(value))
    return true;
  mlir::Operation *op = value.getDefiningOp();
  if (!isElementwise(op) && !mlir::isa_and_nonnull<BroadcastOp>(op))
    return false;
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    if (numElementsOf(operand) == 1)
      return isFixed(operand, 0);
    return rankOf(value) == 1 && shapeOf(operand) == shapeOf(value) &&
           isFixed(operand, at);
  });
}

bool Emitter::isCount(Value value) {
  return value && numElementsOf(value) == 1 &&
         originOf(*this, value, 0, /*fromCount=*/false)
             .first.getDefiningOp<AtMostOp>();
}

/// Whether both are the same function of the same values.
bool Emitter::isSame(Value a, Value b, int depth) {
  constexpr int maxDepth = 16;
  if (a == b)
    return true;
  if (numElementsOf(a) == 1 && numElementsOf(b) == 1) {
    auto [left, leftAt] = originOf(*this, a, 0);
    auto [right, rightAt] = originOf(*this, b, 0);
    if (left == right)
      return leftAt == rightAt;
    if (numElementsOf(left) == 1 && numElementsOf(right) == 1) {
      a = left;
      b = right;
    } else if (leftAt == rightAt && left.getType() == right.getType()) {
      return isSame(left, right, depth + 1);
    }
  }
  mlir::Operation *x = a.getDefiningOp(), *y = b.getDefiningOp();
  // One number may be a list of one.
  bool areOne = numElementsOf(a) == 1 && numElementsOf(b) == 1;
  bool areAlike = areOne ? typeOf(a) == typeOf(b) : a.getType() == b.getType();
  if (!x || !y || depth > maxDepth || x->getName() != y->getName() ||
      !areAlike || x->getNumOperands() != y->getNumOperands())
    return false;
  if (mlir::isa<ConstantOp>(x)) {
    std::optional<HostTensor> left = knownValue(a), right = knownValue(b);
    return left && right && left->getType() == right->getType() &&
           (areOne || left->getShape() == right->getShape()) &&
           left->rawBytes() == right->rawBytes();
  }
  if (x->getAttrDictionary() != y->getAttrDictionary())
    return false;
  auto areSame = [&](auto lefts, auto rights) {
    return llvm::all_of(llvm::zip_equal(lefts, rights), [&](auto pair) {
      auto [left, right] = pair;
      return isSame(left, right, depth + 1);
    });
  };
  if (areSame(x->getOperands(), y->getOperands()))
    return true;
  auto binary = mlir::dyn_cast<BinaryOp>(x);
  return binary &&
         llvm::is_contained({BinaryKind::add, BinaryKind::mul},
                            binary.getKind()) &&
         areSame(x->getOperands(), llvm::reverse(y->getOperands()));
}

bool Emitter::hasCount(Value x, Value count) {
  const Bound *bound = boundOf(x);
  return bound && count && isSame(bound->count, count);
}
