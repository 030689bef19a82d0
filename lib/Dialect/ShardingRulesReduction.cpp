//===- ShardingRulesReduction.cpp - Rules of reductions, norms, scans -----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RuleBuilder.h"

using namespace mlir;
using namespace ax;
using namespace ax::sharding;

Rule ReduceOp::getShardingRule() {
  RuleBuilder builder(OpClass::Reduction);
  llvm::ArrayRef<int64_t> shape = shapeOf(getOperand());
  TensorMap operand, result;
  for (int64_t dim = 0, rank = shape.size(); dim < rank; ++dim) {
    if (!llvm::is_contained(getDims(), dim)) {
      operand.push_back({builder.parallel(shape[dim])});
      result.push_back(operand.back());
      continue;
    }
    switch (getKind()) {
    case ReduceOpKind::sum:
      operand.push_back({builder.reduction(shape[dim], ReduceKind::Sum)});
      break;
    case ReduceOpKind::max:
      operand.push_back({builder.reduction(shape[dim], ReduceKind::Max)});
      break;
    case ReduceOpKind::min:
      operand.push_back({builder.reduction(shape[dim], ReduceKind::Min)});
      break;
    case ReduceOpKind::prod:
      operand.push_back({builder.whole(shape[dim])});
      break;
    }
    if (getKeepDims())
      result.push_back({});
  }
  builder.operand(std::move(operand));
  builder.result(std::move(result));
  if (getKind() == ReduceOpKind::sum)
    builder.linearIn({0});
  return builder.take();
}

Rule ArgReduceOp::getShardingRule() {
  RuleBuilder builder(OpClass::Reduction);
  llvm::ArrayRef<int64_t> shape = shapeOf(getOperand());
  TensorMap operand = builder.allParallel(shape);
  TensorMap result = operand;
  operand[getDim()] = {builder.whole(shape[getDim()])};
  result[getDim()] = {};
  builder.operand(std::move(operand));
  builder.result(std::move(result));
  return builder.take();
}

/// Operand and result have one shape; the dimensions `first` .. `last` - 1
/// are whole.
static RuleBuilder alongDims(Operation *op, int64_t first, int64_t last) {
  RuleBuilder builder(OpClass::Reduction);
  TensorMap map;
  for (auto [dim, size] : llvm::enumerate(shapeOf(op->getOperand(0)))) {
    bool whole =
        static_cast<int64_t>(dim) >= first && static_cast<int64_t>(dim) < last;
    map.push_back({whole ? builder.whole(size) : builder.parallel(size)});
  }
  builder.operand(map);
  // The scale and bias of a norm.
  for (size_t i = 1; i < op->getNumOperands(); ++i)
    builder.operand(TensorMap(map.begin() + first, map.begin() + last));
  builder.result(std::move(map));
  return builder;
}

Rule CumulativeOp::getShardingRule() {
  RuleBuilder builder = alongDims(*this, getDim(), getDim() + 1);
  if (getKind() == ReduceOpKind::sum)
    builder.linearIn({0});
  return builder.take();
}

Rule TopKOp::getShardingRule() {
  RuleBuilder builder(OpClass::Reduction);
  llvm::ArrayRef<int64_t> shape = shapeOf(getOperand());
  TensorMap operand, result;
  for (auto [dim, size] : llvm::enumerate(shape)) {
    bool sorted = static_cast<int64_t>(dim) == static_cast<int64_t>(getDim());
    operand.push_back({sorted ? builder.whole(size) : builder.parallel(size)});
    result.push_back(sorted ? std::vector<int>{builder.whole(getK())}
                            : operand.back());
  }
  builder.operand(std::move(operand));
  builder.result(result);
  builder.result(result);
  return builder.take();
}

Rule NonMaxSuppressionOp::getShardingRule() {
  RuleBuilder builder(OpClass::Reduction);
  llvm::ArrayRef<int64_t> shape = shapeOf(getScores());
  int images = builder.parallel(shape[0]), classes = builder.parallel(shape[1]);
  int boxes = builder.whole(shape[2]);
  builder.operand({{images}, {boxes}, {builder.whole(4)}});
  builder.operand({{images}, {classes}, {boxes}});
  builder.result({{images}, {classes}, {builder.whole(getLimit())}});
  return builder.take();
}

Rule SoftmaxOp::getShardingRule() {
  return alongDims(*this, getDim(), getDim() + 1).take();
}

Rule FakeQuantizeOp::getShardingRule() {
  auto rank = static_cast<int64_t>(shapeOf(getOperand()).size());
  return alongDims(*this, rank - 1, rank).take();
}

Rule LayerNormOp::getShardingRule() {
  return alongDims(*this, getAxis(), shapeOf(getX()).size()).take();
}

Rule RMSNormOp::getShardingRule() {
  return alongDims(*this, getAxis(), shapeOf(getX()).size()).take();
}
