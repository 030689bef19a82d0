//===- ShardingRulesShape.cpp - Rules of ops that move elements -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RuleBuilder.h"

#include <numeric>

using namespace mlir;
using namespace ax;
using namespace ax::sharding;

/// The result of an op without operands: every rank makes its part.
static Rule sourceRule(Operation *op, OpClass opClass) {
  RuleBuilder builder(opClass);
  builder.result(builder.allParallel(shapeOf(op->getResult(0))));
  return builder.take();
}

Rule ConstantOp::getShardingRule() {
  return sourceRule(*this, OpClass::Elementwise);
}
Rule IotaOp::getShardingRule() { return sourceRule(*this, OpClass::Broadcast); }
Rule LoadOp::getShardingRule() {
  return sourceRule(*this, OpClass::Elementwise);
}

/// Ops that are linear in operand 0 and keep the order of its values.
static Rule takeLayoutRule(RuleBuilder &builder) {
  builder.linearIn({0});
  builder.passMaxMin();
  return builder.take();
}

Rule TransposeOp::getShardingRule() {
  RuleBuilder builder(OpClass::Elementwise);
  TensorMap operand = builder.allParallel(shapeOf(getOperand()));
  TensorMap result;
  for (int64_t dim : getPermutation())
    result.push_back(operand[dim]);
  builder.operand(std::move(operand));
  builder.result(std::move(result));
  return takeLayoutRule(builder);
}

Rule BroadcastOp::getShardingRule() {
  RuleBuilder builder(OpClass::Broadcast);
  llvm::ArrayRef<int64_t> shape = shapeOf(getResult());
  TensorMap result = builder.allParallel(shape);
  builder.operand(broadcastMap(result, shapeOf(getOperand()), shape));
  builder.result(std::move(result));
  return takeLayoutRule(builder);
}

/// A dimension of which `kept` elements from `start` on appear in another
/// tensor: when all sizes are multiples of some m, the position modulo m is a
/// parallel factor. Gives the factors of the two dimensions.
static std::pair<std::vector<int>, std::vector<int>>
partOfDim(RuleBuilder &builder, int64_t size, int64_t start, int64_t kept) {
  if (size == kept) {
    int factor = builder.parallel(size);
    return {{factor}, {factor}};
  }
  int64_t unit = std::gcd(std::gcd(size, start), kept);
  if (unit <= 1)
    return {{builder.whole(size)}, {builder.whole(kept)}};
  int minor = builder.parallel(unit);
  return {{builder.whole(size / unit), minor},
          {builder.whole(kept / unit), minor}};
}

Rule SliceOp::getShardingRule() {
  RuleBuilder builder(OpClass::Elementwise);
  llvm::ArrayRef<int64_t> from = shapeOf(getOperand());
  llvm::ArrayRef<int64_t> to = shapeOf(getResult());
  TensorMap operand, result;
  for (size_t dim = 0; dim < from.size(); ++dim) {
    if (getSteps()[dim] == 1) {
      auto [whole, part] =
          partOfDim(builder, from[dim], getStarts()[dim], to[dim]);
      operand.push_back(whole);
      result.push_back(part);
    } else {
      operand.push_back({builder.whole(from[dim])});
      result.push_back({builder.whole(to[dim])});
    }
  }
  builder.operand(std::move(operand));
  builder.result(std::move(result));
  return takeLayoutRule(builder);
}

Rule DynamicSliceOp::getShardingRule() {
  RuleBuilder builder(OpClass::Elementwise);
  builder.operand(builder.allWhole(shapeOf(getOperand())));
  for (size_t i = 0; i < getStarts().size(); ++i)
    builder.operand({});
  builder.result(builder.allWhole(shapeOf(getResult())));
  builder.linearIn({0});
  return builder.take();
}

Rule ConcatOp::getShardingRule() {
  RuleBuilder builder(OpClass::Elementwise);
  llvm::ArrayRef<int64_t> shape = shapeOf(getResult());
  size_t concatDim = getDim();
  TensorMap shared = builder.allParallel(shape);
  int64_t unit = 0;
  for (Value operand : getOperands())
    unit = std::gcd(unit, shapeOf(operand)[concatDim]);
  // As in a slice: the position modulo the largest common unit.
  int minor = unit > 1 ? builder.parallel(unit) : -1;
  auto along = [&](int64_t size) -> std::vector<int> {
    if (minor < 0)
      return {builder.whole(size)};
    return {builder.whole(size / unit), minor};
  };
  std::vector<int> all;
  for (auto [i, operand] : llvm::enumerate(getOperands())) {
    TensorMap map = shared;
    if (getOperands().size() > 1)
      map[concatDim] = along(shapeOf(operand)[concatDim]);
    builder.operand(std::move(map));
    all.push_back(i);
  }
  if (getOperands().size() > 1)
    shared[concatDim] = along(shape[concatDim]);
  builder.result(std::move(shared));
  builder.linearIn(std::move(all));
  builder.passMaxMin();
  return builder.take();
}

Rule PadOp::getShardingRule() {
  RuleBuilder builder(OpClass::Elementwise);
  llvm::ArrayRef<int64_t> from = shapeOf(getOperand());
  llvm::ArrayRef<int64_t> to = shapeOf(getResult());
  TensorMap operand, result;
  for (size_t dim = 0; dim < from.size(); ++dim) {
    bool padded = getLow()[dim] != 0 || getHigh()[dim] != 0;
    operand.push_back(
        {padded ? builder.whole(from[dim]) : builder.parallel(from[dim])});
    result.push_back(padded ? std::vector<int>{builder.whole(to[dim])}
                            : operand.back());
  }
  builder.operand(std::move(operand));
  if (getValue())
    builder.operand({});
  builder.result(std::move(result));
  builder.linearIn(getValue() ? std::vector<int>{0, 1} : std::vector<int>{0});
  builder.passMaxMin();
  return builder.take();
}
