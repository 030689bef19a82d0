//===- CausalKeyMask.cpp - Masks of causality and padding -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CausalKeyMask.h"

#include "../KnownValue.h"
#include "../Match.h"
#include "AttentionMask.h"

#include "mlir/Dialect/Traits.h"

#include <cmath>

using namespace mlir;
using namespace ax;

namespace {

/// What is made while a mask is looked at, to be erased if it is none of these.
class Created : public OpBuilder::Listener {
public:
  void notifyOperationInserted(Operation *op,
                               OpBuilder::InsertPoint previous) final {
    if (!previous.isSet())
      created.push_back(op);
  }
  void eraseUnused(Value but) {
    for (Operation *op : llvm::reverse(created))
      if (op->use_empty() && (!but || op != but.getDefiningOp()))
        op->erase();
    created.clear();
  }

private:
  SmallVector<Operation *> created;
};

SmallVector<int64_t> withOneRow(ArrayRef<int64_t> shape, bool aligned) {
  SmallVector<int64_t> result(shape);
  if (aligned && shape.size() > 1)
    result[shape.size() - 2] = 1;
  return result;
}

bool isSameForAllQueries(Value value, bool aligned) {
  return ArrayRef<int64_t>(withOneRow(shapeOf(value), aligned)) ==
         shapeOf(value);
}

bool isOfTruth(Value value) { return elementType(value).isInteger(1); }

} // namespace

CausalKeyMasks::Content CausalKeyMasks::Content::ofNumber(double number) {
  Content content;
  content.number = number;
  return content;
}

CausalKeyMasks::Content CausalKeyMasks::Content::ofChoice(Value condition,
                                                          double number,
                                                          double otherwise) {
  Content content = ofNumber(number);
  if (number == otherwise)
    return content;
  content.otherwise = otherwise;
  content.condition = condition;
  return content;
}

CausalKeyMasks::Content CausalKeyMasks::Content::ofValue(Value value) {
  if (isOfTruth(value))
    return ofChoice(value, 1, 0);
  Content content;
  content.value = value;
  return content;
}

Value CausalKeyMasks::materialize(const Content &content, Type element) {
  if (content.value)
    return content.value;
  auto splat = [&](double number) {
    return createSplat(*builder, *loc, RankedTensorType::get({}, element),
                       number);
  };
  if (content.isNumber())
    return splat(*content.number);
  if (element.isInteger(1) && *content.number == 1)
    return content.condition;
  return SelectOp::create(*builder, *loc, content.condition,
                          splat(*content.number), splat(*content.otherwise));
}

/// What decides, where not all operands are known.
static std::optional<double> decide(Operation *op,
                                    ArrayRef<std::optional<double>> numbers) {
  auto binary = dyn_cast<BinaryOp>(op);
  if (!binary)
    return std::nullopt;
  for (std::optional<double> number : numbers) {
    if (binary.getKind() == BinaryKind::logical_and && number == 0)
      return 0;
    if (binary.getKind() == BinaryKind::logical_or && number == 1)
      return 1;
  }
  return std::nullopt;
}

CausalKeyMasks::Content CausalKeyMasks::apply(Operation *op,
                                              ArrayRef<Content> operands) {
  SmallVector<std::optional<double>> numbers;
  SmallVector<double> first, second;
  Value condition;
  bool isChoice = true;
  for (const Content &operand : operands) {
    numbers.push_back(operand.isNumber() ? operand.number : std::nullopt);
    if (operand.value ||
        (condition && operand.condition && operand.condition != condition)) {
      isChoice = false;
      continue;
    }
    if (operand.condition)
      condition = operand.condition;
    first.push_back(*operand.number);
    second.push_back(operand.condition ? *operand.otherwise : *operand.number);
  }
  if (std::optional<double> decided = decide(op, numbers))
    return Content::ofNumber(*decided);
  if (isa<SelectOp>(op)) {
    if (numbers[0])
      return operands[*numbers[0] != 0 ? 1 : 2];
    if (numbers[1] && numbers[1] == numbers[2])
      return Content::ofNumber(*numbers[1]);
  }
  if (isChoice) {
    std::optional<double> onTrue = evaluateOnNumbers(op, first),
                          onFalse = evaluateOnNumbers(op, second);
    if (onTrue && onFalse)
      return Content::ofChoice(condition, *onTrue, *onFalse);
  }
  SmallVector<Value> values;
  SmallVector<int64_t> shape;
  for (auto [operand, content] : llvm::zip_equal(op->getOperands(), operands)) {
    values.push_back(materialize(content, elementType(operand)));
    SmallVector<int64_t> joined;
    OpTrait::util::getBroadcastedShape(shape, shapeOf(values.back()), joined);
    shape = joined;
  }
  return Content::ofValue(recreate(*builder, op, values, shape));
}

std::optional<CausalKeyMasks::Sides> CausalKeyMasks::ofElements(Operation *op,
                                                                bool aligned) {
  Sides result;
  SmallVector<Content> inside, outside;
  for (Value operand : op->getOperands()) {
    std::optional<Sides> of = sidesOf(operand, aligned);
    if (!of ||
        (of->diagonal && result.diagonal && of->diagonal != result.diagonal))
      return std::nullopt;
    if (of->diagonal)
      result.diagonal = of->diagonal;
    inside.push_back(of->inside);
    outside.push_back(of->outside);
  }
  result.inside = apply(op, inside);
  result.outside = result.diagonal ? apply(op, outside) : result.inside;
  return result;
}

/// Of a result of `op` (broadcast or reshape) what its operand has.
CausalKeyMasks::Content
CausalKeyMasks::move(Operation *op, const Content &content, bool aligned) {
  if (content.isNumber())
    return content;
  SmallVector<int64_t> from = withOneRow(shapeOf(op->getOperand(0)), aligned),
                       to = withOneRow(shapeOf(op->getResult(0)), aligned);
  auto moved = [&](Value value) -> Value {
    auto broadcast = [&](ArrayRef<int64_t> shape) -> Value {
      if (shapeOf(value) == shape)
        return value;
      return BroadcastOp::create(*builder, *loc, tensorType(value).clone(shape),
                                 value);
    };
    if (isa<BroadcastOp>(op))
      return broadcast(to);
    value = broadcast(from);
    return reshapeTo(*builder, *loc, value, to);
  };
  return content.value ? Content::ofValue(moved(content.value))
                       : Content::ofChoice(moved(content.condition),
                                           *content.number, *content.otherwise);
}

std::optional<CausalKeyMasks::Sides> CausalKeyMasks::ofMoved(Operation *op,
                                                             bool aligned) {
  Value operand = op->getOperand(0), result = op->getResult(0);
  if (isa<ReshapeOp>(op) && aligned) {
    ArrayRef<int64_t> from = shapeOf(operand), to = shapeOf(result);
    bool keepsRows = from.size() > 1 && to.size() > 1 &&
                     from.take_back(2) == to.take_back(2);
    if (!keepsRows && !isSameForAllQueries(result, aligned))
      return std::nullopt;
    aligned = keepsRows;
  }
  std::optional<Sides> of = sidesOf(operand, aligned);
  if (!of)
    return std::nullopt;
  Sides moved{of->diagonal, move(op, of->inside, aligned), {}};
  moved.outside =
      moved.diagonal ? move(op, of->outside, aligned) : moved.inside;
  return moved;
}

std::optional<CausalKeyMasks::Sides>
CausalKeyMasks::computeSides(Value value, bool aligned) {
  auto everywhere = [](Content content) {
    return Sides{std::nullopt, content, content};
  };
  if (aligned)
    if (std::optional<MaskRegion> region = regions.find(value)) {
      decided.push_back(value);
      return Sides{region->diagonal, Content::ofNumber(region->inside),
                   Content::ofNumber(region->outside)};
    }
  Operation *op = value.getDefiningOp();
  bool isShared = isSameForAllQueries(value, aligned);
  // Masks are made in fewer steps, and a graph may be of any depth.
  constexpr int mostSteps = 64;
  std::optional<Sides> made;
  if (steps >= mostSteps)
    op = nullptr;
  if (op && isElementwise(op))
    made = ofElements(op, aligned);
  else if (isa_and_nonnull<BroadcastOp, ReshapeOp>(op))
    made = ofMoved(op, aligned);
  // What is there already need not be made again.
  if (isShared && (!made || made->inside.value ||
                   (isOfTruth(value) && !made->inside.isNumber())))
    return everywhere(Content::ofValue(value));
  return made;
}

std::optional<CausalKeyMasks::Sides> CausalKeyMasks::sidesOf(Value value,
                                                             bool aligned) {
  auto [entry, isNew] = sides.try_emplace({value, aligned});
  if (!isNew)
    return entry->second;
  ++steps;
  std::optional<Sides> made = computeSides(value, aligned);
  --steps;
  return sides[{value, aligned}] = made;
}

std::optional<CausalKeyMask> CausalKeyMasks::find(Value mask) {
  auto [entry, isNew] = found.try_emplace(mask);
  Operation *op = mask.getDefiningOp();
  if (!isNew || !op)
    return entry->second;
  Created created;
  OpBuilder behind(op->getContext(), &created);
  behind.setInsertionPointAfter(op);
  std::optional<CausalKeyMask> result = compute(mask, behind);
  created.eraseUnused(/*but=*/result ? result->ofKeys : Value());
  return found[mask] = result;
}

std::optional<CausalKeyMask> CausalKeyMasks::compute(Value mask,
                                                     OpBuilder &behind) {
  builder = &behind;
  loc = mask.getLoc();
  sides.clear();
  decided.clear();
  std::optional<Sides> of = sidesOf(mask, /*aligned=*/true);
  ArrayRef<int64_t> shape = shapeOf(mask);
  int64_t queries = shape[2], keys = shape[3];
  if (!of || queries == 1 || keys < queries || of->diagonal != keys - queries ||
      !of->outside.isNumber())
    return std::nullopt;
  Type type = elementType(mask);
  double hidden = *of->outside.number;
  if (isAttendable(hidden, type) != false)
    return std::nullopt;
  CausalKeyMask result;
  result.isMeanWhereEmpty = !type.isInteger(1) && std::isfinite(hidden);
  // Beside -1e9 scores of more than 32 still tell, where a query sees no key.
  constexpr double swallowsAll = -1e30;
  if (result.isMeanWhereEmpty && hidden > swallowsAll && !of->inside.isNumber())
    return std::nullopt;

  Content inside = of->inside;
  auto isSeen = [&](double number) {
    return isAttendable(number, type) == true;
  };
  auto hides = [&](double number, double other) {
    return isSeen(number) && other == hidden;
  };
  Value left;
  if (inside.condition && hides(*inside.number, *inside.otherwise))
    left = inside.condition;
  else if (inside.condition && hides(*inside.otherwise, *inside.number))
    left =
        UnaryOp::create(behind, *loc, UnaryKind::logical_not, inside.condition);
  else if (result.isMeanWhereEmpty && !inside.isNumber())
    return std::nullopt;
  else if (!inside.isNumber())
    left = materialize(inside, type);
  else if (!isSeen(*inside.number))
    return std::nullopt;
  if (left) {
    SmallVector<int64_t> four(shapeOf(left));
    four.insert(four.begin(), shape.size() - four.size(), 1);
    result.ofKeys = reshapeTo(behind, *loc, left, four);
  }
  for (Value value : decided)
    noteDecided(value);
  return result;
}
