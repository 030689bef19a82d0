//===- BandMask.cpp - Masks of causality, windows and padding -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "BandMask.h"

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

BandMasks::Content BandMasks::Content::ofNumber(double number) {
  Content content;
  content.number = number;
  return content;
}

BandMasks::Content BandMasks::Content::ofChoice(Value condition, double number,
                                                double otherwise) {
  Content content = ofNumber(number);
  if (number == otherwise)
    return content;
  content.otherwise = otherwise;
  content.condition = condition;
  return content;
}

BandMasks::Content BandMasks::Content::ofValue(Value value) {
  if (isOfTruth(value))
    return ofChoice(value, 1, 0);
  Content content;
  content.value = value;
  return content;
}

Value BandMasks::materialize(const Content &content, Type element) {
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

BandMasks::Content BandMasks::apply(Operation *op, ArrayRef<Content> operands) {
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

std::optional<BandMasks::Contents> BandMasks::ofElements(Operation *op,
                                                         bool aligned) {
  SmallVector<Contents> operands;
  for (Value operand : op->getOperands()) {
    std::optional<Contents> of = contentsOf(operand, aligned);
    if (!of)
      return std::nullopt;
    operands.push_back(*of);
  }
  return mapBands<Content>(
      ArrayRef<Contents>(operands),
      [&](ArrayRef<Content> parts) { return std::optional(apply(op, parts)); });
}

/// Of a result of `op` (broadcast or reshape) what its operand has.
BandMasks::Content BandMasks::move(Operation *op, const Content &content,
                                   bool aligned) {
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

std::optional<BandMasks::Contents> BandMasks::ofMoved(Operation *op,
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
  std::optional<Contents> of = contentsOf(operand, aligned);
  if (!of)
    return std::nullopt;
  for (Content &part : of->parts)
    part = move(op, part, aligned);
  return of;
}

std::optional<BandMasks::Contents> BandMasks::computeContents(Value value,
                                                              bool aligned) {
  if (aligned)
    if (std::optional<MaskRegion> region = regions.find(value)) {
      decided.push_back(value);
      return mapBands<Content>(ArrayRef(*region), [](ArrayRef<double> number) {
        return std::optional(Content::ofNumber(number[0]));
      });
    }
  Operation *op = value.getDefiningOp();
  // Masks are made in fewer steps, and a graph may be of any depth.
  constexpr int mostSteps = 64;
  std::optional<Contents> made;
  if (steps >= mostSteps)
    op = nullptr;
  if (op && isElementwise(op))
    made = ofElements(op, aligned);
  else if (isa_and_nonnull<BroadcastOp, ReshapeOp>(op))
    made = ofMoved(op, aligned);
  // What is there already need not be made again.
  auto isMadeAgain = [&](const Content &content) {
    return content.value || (isOfTruth(value) && !content.isNumber());
  };
  if (isSameForAllQueries(value, aligned) &&
      (!made || llvm::any_of(made->parts, isMadeAgain)))
    return Contents::everywhere(Content::ofValue(value));
  return made;
}

std::optional<BandMasks::Contents> BandMasks::contentsOf(Value value,
                                                         bool aligned) {
  auto [entry, isNew] = contents.try_emplace({value, aligned});
  if (!isNew)
    return entry->second;
  ++steps;
  std::optional<Contents> made = computeContents(value, aligned);
  --steps;
  return contents[{value, aligned}] = made;
}

std::optional<BandMask> BandMasks::find(Value mask) {
  auto [entry, isNew] = found.try_emplace(mask);
  Operation *op = mask.getDefiningOp();
  if (!isNew || !op)
    return entry->second;
  Created created;
  OpBuilder behind(op->getContext(), &created);
  behind.setInsertionPointAfter(op);
  std::optional<BandMask> result = compute(mask, behind);
  created.eraseUnused(/*but=*/result ? result->ofKeys : Value());
  return found[mask] = result;
}

/// Of what queries see in their band, a mask of keys; null where they see all,
/// none where it is no such mask.
std::optional<Value> BandMasks::keysOf(const Content &seen, double hidden,
                                       Type type, bool isMean) {
  auto isSeen = [&](double number) {
    return isAttendable(number, type) == true;
  };
  auto hides = [&](double number, double other) {
    return isSeen(number) && other == hidden;
  };
  if (seen.isNumber())
    return isSeen(*seen.number) ? std::optional(Value()) : std::nullopt;
  if (seen.condition && hides(*seen.number, *seen.otherwise))
    return seen.condition;
  if (seen.condition && hides(*seen.otherwise, *seen.number))
    return UnaryOp::create(*builder, *loc, UnaryKind::logical_not,
                           seen.condition);
  if (isMean)
    return std::nullopt;
  return materialize(seen, type);
}

std::optional<BandMask> BandMasks::compute(Value mask, OpBuilder &behind) {
  builder = &behind;
  loc = mask.getLoc();
  contents.clear();
  decided.clear();
  std::optional<Contents> of = contentsOf(mask, /*aligned=*/true);
  ArrayRef<int64_t> shape = shapeOf(mask);
  if (!of || shape[2] == 1)
    return std::nullopt;
  Type type = elementType(mask);
  auto isHidden = [&](const Content &part) {
    return part.isNumber() && isAttendable(*part.number, type) == false;
  };
  // One band is seen, and what is before it hidden, or behind it, or both.
  BandMask result;
  ArrayRef<Content> parts(of->parts);
  if (parts.size() > 1 && isHidden(parts.front()))
    result.before = of->ends.front();
  if (parts.size() > 1 && isHidden(parts.back()))
    result.last = of->ends.back();
  bool hidesBoth = result.before && result.last;
  if (parts.size() != (hidesBoth ? 3 : 2) || !(result.before || result.last))
    return std::nullopt;
  const Content &seen = parts[result.before ? 1 : 0];
  double hidden = *(result.before ? parts.front() : parts.back()).number;
  if (hidesBoth && hidden != *parts.back().number)
    return std::nullopt;
  result.isMeanWhereEmpty = !type.isInteger(1) && std::isfinite(hidden);
  // Beside -1e9 scores of more than 32 still tell, where a query sees no key.
  constexpr double swallowsAll = -1e30;
  if (result.isMeanWhereEmpty && hidden > swallowsAll && !seen.isNumber())
    return std::nullopt;
  std::optional<Value> left =
      keysOf(seen, hidden, type, result.isMeanWhereEmpty);
  if (!left)
    return std::nullopt;
  if (*left) {
    SmallVector<int64_t> four(shapeOf(*left));
    four.insert(four.begin(), shape.size() - four.size(), 1);
    result.ofKeys = reshapeTo(behind, *loc, *left, four);
  }
  for (Value value : decided)
    noteDecided(value);
  return result;
}
