//===- ShardingRulesGather.cpp - Rules of gather and scatter --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RuleBuilder.h"

using namespace mlir;
using namespace ax;
using namespace ax::sharding;

Rule GatherOp::getShardingRule() {
  RuleBuilder builder(OpClass::Reduction);
  llvm::ArrayRef<int64_t> shape = shapeOf(getOperand());
  size_t axis = getAxis();
  // A rank holding part of the indexed dimension gives 0 for indices outside
  // it, so parts add up; false is the 0 of any.
  bool isBool = tensorType(getOperand()).getElementType().isInteger(1);
  TensorMap operand;
  for (auto [dim, size] : llvm::enumerate(shape))
    operand.push_back(
        {dim != axis ? builder.parallel(size)
                     : builder.reduction(size, isBool ? ReduceKind::Max
                                                      : ReduceKind::Sum)});
  TensorMap indices = builder.allParallel(shapeOf(getIndices()));
  TensorMap result(operand.begin(), operand.begin() + axis);
  result.insert(result.end(), indices.begin(), indices.end());
  result.insert(result.end(), operand.begin() + axis + 1, operand.end());
  builder.operand(std::move(operand));
  builder.operand(std::move(indices));
  builder.result(std::move(result));
  builder.linearIn({0});
  return builder.take();
}

Rule GatherGradientOp::getShardingRule() {
  RuleBuilder builder(OpClass::Reduction);
  llvm::ArrayRef<int64_t> updatesShape = shapeOf(getUpdates());
  size_t axis = getAxis(), depth = shapeOf(getIndices()).size();
  // Ranks that hold some of the slices hold an addend each. A rank that holds
  // a part of the result drops what belongs to others.
  TensorMap indices,
      result = builder.allParallel(updatesShape.take_front(axis));
  TensorMap updates = result;
  for (int64_t size : shapeOf(getIndices())) {
    indices.push_back({builder.reduction(size)});
    updates.push_back(indices.back());
  }
  result.push_back({builder.parallel(getSize())});
  for (int64_t size : updatesShape.drop_front(axis + depth)) {
    updates.push_back({builder.parallel(size)});
    result.push_back(updates.back());
  }
  builder.operand(std::move(updates));
  builder.operand(std::move(indices));
  builder.result(std::move(result));
  builder.linearIn({0});
  return builder.take();
}

/// The maps of gather_elements and scatter_elements: one for `operand`, one
/// for the tensors of the shape of `indices`. Dimensions other than `axis` go
/// together where their sizes agree.
static std::pair<TensorMap, TensorMap>
elementMaps(RuleBuilder &builder, llvm::ArrayRef<int64_t> operand,
            llvm::ArrayRef<int64_t> indices, size_t axis) {
  TensorMap operandMap, indicesMap;
  for (size_t dim = 0; dim < operand.size(); ++dim) {
    if (dim != axis && operand[dim] == indices[dim]) {
      operandMap.push_back({builder.parallel(operand[dim])});
      indicesMap.push_back(operandMap.back());
    } else {
      operandMap.push_back({builder.whole(operand[dim])});
      indicesMap.push_back({builder.whole(indices[dim])});
    }
  }
  return {operandMap, indicesMap};
}

Rule GatherElementsOp::getShardingRule() {
  RuleBuilder builder(OpClass::Reduction);
  llvm::ArrayRef<int64_t> indicesShape = shapeOf(getIndices());
  size_t axis = getAxis();
  auto [operand, indices] =
      elementMaps(builder, shapeOf(getOperand()), indicesShape, axis);
  // Every index reads on its own.
  indices[axis] = {builder.parallel(indicesShape[axis])};
  builder.operand(operand);
  builder.operand(indices);
  builder.result(indices);
  builder.linearIn({0});
  return builder.take();
}

Rule ScatterElementsOp::getShardingRule() {
  RuleBuilder builder(OpClass::Reduction);
  auto [operand, indices] = elementMaps(builder, shapeOf(getOperand()),
                                        shapeOf(getIndices()), getAxis());
  builder.operand(operand);
  builder.operand(indices);
  builder.operand(indices);
  builder.result(operand);
  if (getKind() == ScatterKind::set || getKind() == ScatterKind::add)
    builder.linearIn({0, 2});
  return builder.take();
}

Rule GatherNDOp::getShardingRule() {
  RuleBuilder builder(OpClass::Reduction);
  llvm::ArrayRef<int64_t> shape = shapeOf(getOperand());
  llvm::ArrayRef<int64_t> indicesShape = shapeOf(getIndices());
  size_t numBatch = getBatchDims();
  size_t numIndexed = indicesShape.back();
  TensorMap operand = builder.allParallel(shape.take_front(numBatch));
  TensorMap indices = operand;
  for (int64_t size : shape.slice(numBatch, numIndexed))
    operand.push_back({builder.whole(size)});
  for (int64_t size : indicesShape.drop_back().drop_front(numBatch))
    indices.push_back({builder.parallel(size)});
  TensorMap result = indices;
  for (int64_t size : shape.drop_front(numBatch + numIndexed)) {
    operand.push_back({builder.parallel(size)});
    result.push_back(operand.back());
  }
  indices.push_back({builder.whole(numIndexed)});
  builder.operand(std::move(operand));
  builder.operand(std::move(indices));
  builder.result(std::move(result));
  builder.linearIn({0});
  return builder.take();
}

Rule ScatterNDOp::getShardingRule() {
  RuleBuilder builder(OpClass::Reduction);
  llvm::ArrayRef<int64_t> shape = shapeOf(getOperand());
  llvm::ArrayRef<int64_t> indicesShape = shapeOf(getIndices());
  size_t numIndexed = indicesShape.back();
  TensorMap operand = builder.allWhole(shape.take_front(numIndexed));
  TensorMap indices = builder.allWhole(indicesShape);
  TensorMap updates(indices.begin(), indices.end() - 1);
  for (int64_t size : shape.drop_front(numIndexed)) {
    operand.push_back({builder.parallel(size)});
    updates.push_back(operand.back());
  }
  builder.operand(operand);
  builder.operand(std::move(indices));
  builder.operand(std::move(updates));
  builder.result(operand);
  if (getKind() == ScatterKind::set || getKind() == ScatterKind::add)
    builder.linearIn({0, 2});
  return builder.take();
}
