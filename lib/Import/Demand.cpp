//===- Demand.cpp - Values that decide shapes -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Folding leaves alone what is large, or made of weights: the plan has it.
// Where a shape is to be known, what decides it is worked out all the same.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

#include "ax/Dialect/Ax.h"
#include "ax/Dialect/IndexRange.h"
#include "ax/Dialect/Random.h"

#include "llvm/ADT/SetVector.h"

#include <random>

using namespace ax;
using namespace ax::import;

std::optional<HostTensor> Emitter::betweenEqualBounds(mlir::Operation *op) {
  auto limit = mlir::dyn_cast<BinaryOp>(op);
  if (!limit ||
      !llvm::is_contained({BinaryKind::min, BinaryKind::max}, limit.getKind()))
    return std::nullopt;
  constexpr int64_t maxSizes = 1024;
  auto ofConstant = [&](ConstantOp constant) {
    std::optional<HostTensor> known = knownValue(constant);
    if (!known || known->numElements() == 0)
      return IndexRange();
    IndexRange range{known->getInt(0), known->getInt(0)};
    for (int64_t i = 1; i < known->numElements(); ++i)
      range = {std::min(range.low, known->getInt(i)),
               std::max(range.high, known->getInt(i))};
    return range;
  };
  IndexRange range = findRange(limit.getResult(), ofConstant);
  if (range.low != range.high ||
      Emitter::numElementsOf(limit.getResult()) > maxSizes)
    return std::nullopt;
  HostTensor sizes(Emitter::typeOf(limit.getResult()),
                   Shape(Emitter::shapeOf(limit.getResult())));
  for (int64_t i = 0; i < sizes.numElements(); ++i)
    sizes.setInt(i, range.low);
  return sizes;
}

std::optional<HostTensor>
Emitter::demand(Value value, std::optional<int64_t> fewer,
                llvm::DenseMap<Value, HostTensor> &made, int depth) {
  constexpr int maxDepth = 1000;
  // Training changes weights; what is read of one as it is, it does not.
  auto state = states.find(value);
  bool changes = state != states.end() && training && depth > 0 &&
                 isFloat(state->second.weight.type);
  if (changes)
    return std::nullopt;
  if (std::optional<HostTensor> known = knownValue(value))
    return known;
  if (auto found = made.find(value); found != made.end())
    return found->second;
  mlir::Operation *op = value ? value.getDefiningOp() : nullptr;
  if (failed || !op || boundOf(value) || isRandom(op) || !isCheap(op) ||
      op->getNumOperands() == 0 || depth > maxDepth)
    return std::nullopt;
  if (auto count = mlir::dyn_cast<AtMostOp>(op); count && fewer) {
    HostTensor number(typeOf(value), Shape(shapeOf(value)));
    auto limit = static_cast<int64_t>(count.getLimit());
    for (int64_t i = 0; i < number.numElements(); ++i)
      number.setInt(i, std::max<int64_t>(0, limit - *fewer));
    return number;
  }
  std::vector<HostTensor> operands;
  for (Value operand : op->getOperands()) {
    std::optional<HostTensor> known = demand(operand, fewer, made, depth + 1);
    if (!known)
      return betweenEqualBounds(op);
    operands.push_back(std::move(*known));
  }
  std::optional<std::vector<HostTensor>> results = interpret(op, operands);
  if (!results)
    return std::nullopt;
  for (auto [result, tensor] : llvm::zip_equal(op->getResults(), *results))
    made[result] = std::move(tensor);
  return made.find(value)->second;
}

bool Emitter::forNumbersOfResults(
    ArrayRef<Value> values, llvm::function_ref<bool(ArrayRef<HostTensor>)> fn) {
  llvm::SetVector<Value> behind(values.begin(), values.end());
  // Numbers that follow from no others, and which of them are one.
  std::vector<Value> numbers;
  std::vector<std::pair<Value, size_t>> places;
  for (size_t i = 0; i < behind.size(); ++i) {
    Value value = behind[i];
    mlir::Operation *op = value.getDefiningOp();
    if (mlir::isa_and_nonnull<AtMostOp>(op) && !demand(op->getOperand(0), 0)) {
      auto same = llvm::find_if(
          numbers, [&](Value number) { return isSame(number, value); });
      places.emplace_back(value, same - numbers.begin());
      if (same == numbers.end())
        numbers.push_back(value);
    } else if (op) {
      behind.insert(op->operand_begin(), op->operand_end());
    }
  }
  auto limitOf = [](Value number) {
    return mlir::cast<AtMostOp>(number.getDefiningOp()).getLimit();
  };
  // Of one node there are all numbers, if these are few. Of several nodes, or
  // of many results, this is a test and no proof.
  constexpr uint64_t few = 1024, some = 64;
  bool areAll = numbers.size() == 1 && limitOf(numbers[0]) <= few;
  uint64_t trials = areAll ? limitOf(numbers[0]) + 1 : some;
  std::mt19937_64 random(1);
  for (uint64_t trial = 0; trial < trials; ++trial) {
    std::vector<int64_t> chosen;
    for (Value number : numbers) {
      uint64_t limit = limitOf(number);
      // All of all nodes, none of any, then whatever.
      uint64_t count = areAll       ? trial
                       : trial == 0 ? limit
                       : trial == 1 ? 0
                                    : random() % (limit + 1);
      chosen.push_back(static_cast<int64_t>(count));
    }
    llvm::DenseMap<Value, HostTensor> made;
    for (auto [value, which] : places) {
      HostTensor number(typeOf(value), Shape(shapeOf(value)));
      for (int64_t i = 0; i < number.numElements(); ++i)
        number.setInt(i, chosen[which]);
      made[value] = std::move(number);
    }
    std::vector<HostTensor> known;
    for (Value value : values) {
      std::optional<HostTensor> tensor = demand(value, std::nullopt, made, 0);
      if (!tensor)
        return false;
      known.push_back(std::move(*tensor));
    }
    if (!fn(known))
      return false;
  }
  return true;
}

std::optional<HostTensor> Emitter::demand(Value value,
                                          std::optional<int64_t> fewer) {
  llvm::DenseMap<Value, HostTensor> made;
  return demand(value, fewer, made, 0);
}
