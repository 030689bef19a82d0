//===- ShardingRulesContraction.cpp - Rules of sums of products -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RuleBuilder.h"

using namespace mlir;
using namespace ax;
using namespace ax::sharding;

/// Operands 0 and 1 multiply. Floats of eight bits are no addends.
static void linearInFactors(RuleBuilder &builder, Operation *op) {
  if (isFloat8(tensorType(op->getOperand(0)).getElementType()))
    return;
  builder.linearIn({0});
  builder.linearIn({1});
}

Rule DotOp::getShardingRule() {
  RuleBuilder builder(OpClass::Reduction);
  llvm::ArrayRef<int64_t> lhsShape = shapeOf(getLhs());
  llvm::ArrayRef<int64_t> rhsShape = shapeOf(getRhs());
  TensorMap lhs(lhsShape.size()), rhs(rhsShape.size()), result;
  for (auto [l, r] : llvm::zip_equal(getLhsBatch(), getRhsBatch())) {
    lhs[l] = rhs[r] = {builder.parallel(lhsShape[l])};
    result.push_back(lhs[l]);
  }
  for (auto [l, r] : llvm::zip_equal(getLhsContract(), getRhsContract()))
    lhs[l] = rhs[r] = {builder.reduction(lhsShape[l])};
  auto addFree = [&](TensorMap &map, llvm::ArrayRef<int64_t> shape) {
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      if (!map[dim].empty())
        continue;
      map[dim] = {builder.parallel(shape[dim])};
      result.push_back(map[dim]);
    }
  };
  addFree(lhs, lhsShape);
  addFree(rhs, rhsShape);
  builder.operand(std::move(lhs));
  builder.operand(std::move(rhs));
  builder.result(std::move(result));
  linearInFactors(builder, *this);
  return builder.take();
}

Rule LinearOp::getShardingRule() {
  RuleBuilder builder(OpClass::Reduction);
  llvm::ArrayRef<int64_t> xShape = shapeOf(getX());
  TensorMap x = builder.allParallel(xShape.drop_back());
  TensorMap result = x;
  int k = builder.reduction(xShape.back());
  int n = builder.parallel(shapeOf(getResult()).back());
  x.push_back({k});
  result.push_back({n});
  builder.operand(std::move(x));
  builder.operand(getTransposeW() ? TensorMap{{n}, {k}} : TensorMap{{k}, {n}});
  builder.result(std::move(result));
  linearInFactors(builder, *this);
  return builder.take();
}

Rule ConvOp::getShardingRule() {
  RuleBuilder builder(OpClass::Reduction);
  llvm::ArrayRef<int64_t> wShape = shapeOf(getW());
  int64_t numGroups = getGroups();
  int batch = builder.parallel(shapeOf(getX())[0]);
  int groups = builder.parallel(numGroups);
  int out = builder.parallel(wShape[0] / numGroups);
  int in = builder.reduction(wShape[1]);
  TensorMap x = {{batch}, {groups, in}};
  TensorMap w = {{groups, out}, {in}};
  TensorMap result = {{batch}, {groups, out}};
  for (size_t dim = 2; dim < wShape.size(); ++dim) {
    x.push_back({builder.whole(shapeOf(getX())[dim])});
    w.push_back({builder.whole(wShape[dim])});
    result.push_back({builder.whole(shapeOf(getResult())[dim])});
  }
  builder.operand(std::move(x));
  builder.operand(std::move(w));
  builder.result(std::move(result));
  linearInFactors(builder, *this);
  return builder.take();
}

Rule ConvTransposeOp::getShardingRule() {
  RuleBuilder builder(OpClass::Reduction);
  llvm::ArrayRef<int64_t> wShape = shapeOf(getW());
  int64_t numGroups = getGroups();
  int batch = builder.parallel(shapeOf(getX())[0]);
  int groups = builder.parallel(numGroups);
  int in = builder.reduction(wShape[0] / numGroups);
  int out = builder.parallel(wShape[1]);
  TensorMap x = {{batch}, {groups, in}};
  TensorMap w = {{groups, in}, {out}};
  TensorMap result = {{batch}, {groups, out}};
  for (size_t dim = 2; dim < wShape.size(); ++dim) {
    x.push_back({builder.whole(shapeOf(getX())[dim])});
    w.push_back({builder.whole(wShape[dim])});
    result.push_back({builder.whole(shapeOf(getResult())[dim])});
  }
  builder.operand(std::move(x));
  builder.operand(std::move(w));
  builder.result(std::move(result));
  linearInFactors(builder, *this);
  return builder.take();
}

Rule ConvWeightGradientOp::getShardingRule() {
  RuleBuilder builder(OpClass::Reduction);
  llvm::ArrayRef<int64_t> wShape = shapeOf(getResult());
  int64_t numGroups = getGroups();
  int batch = builder.reduction(shapeOf(getX())[0]);
  int groups = builder.parallel(numGroups);
  int out = builder.parallel(wShape[0] / numGroups);
  int in = builder.parallel(wShape[1]);
  TensorMap x = {{batch}, {groups, in}};
  TensorMap gradient = {{batch}, {groups, out}};
  TensorMap result = {{groups, out}, {in}};
  for (size_t dim = 2; dim < wShape.size(); ++dim) {
    x.push_back({builder.whole(shapeOf(getX())[dim])});
    gradient.push_back({builder.whole(shapeOf(getGradient())[dim])});
    result.push_back({builder.whole(wShape[dim])});
  }
  builder.operand(std::move(x));
  builder.operand(std::move(gradient));
  builder.result(std::move(result));
  linearInFactors(builder, *this);
  return builder.take();
}

Rule MaxPoolGradientOp::getShardingRule() {
  RuleBuilder builder(OpClass::Reduction);
  llvm::ArrayRef<int64_t> xShape = shapeOf(getX());
  TensorMap x = builder.allParallel(xShape.take_front(2));
  TensorMap gradient = x;
  for (size_t dim = 2; dim < xShape.size(); ++dim) {
    x.push_back({builder.whole(xShape[dim])});
    gradient.push_back({builder.whole(shapeOf(getGradient())[dim])});
  }
  builder.operand(x);
  builder.operand(std::move(gradient));
  builder.result(std::move(x));
  builder.linearIn({1});
  return builder.take();
}

Rule PoolOp::getShardingRule() {
  RuleBuilder builder(OpClass::Reduction);
  llvm::ArrayRef<int64_t> xShape = shapeOf(getX());
  TensorMap x = builder.allParallel(xShape.take_front(2));
  TensorMap result = x;
  for (size_t dim = 2; dim < xShape.size(); ++dim) {
    x.push_back({builder.whole(xShape[dim])});
    result.push_back({builder.whole(shapeOf(getResult())[dim])});
  }
  builder.operand(std::move(x));
  builder.result(std::move(result));
  if (getKind() != PoolKind::max)
    builder.linearIn({0});
  return builder.take();
}

namespace {
/// The dimensions of attention's operands, and of its gradient's.
struct AttentionMaps {
  template <typename Op>
  AttentionMaps(Op op, int batch, int kvHeads, int group, int s, int t, int d,
                int dv)
      : q{{batch}, {kvHeads, group}, {s}, {d}}, k{{batch}, {kvHeads}, {t}, {d}},
        v{{batch}, {kvHeads}, {t}, {dv}},
        result{{batch}, {kvHeads, group}, {s}, {dv}} {
    llvm::ArrayRef<int64_t> qShape = shapeOf(op.getQ());
    if (op.getMask())
      mask = broadcastMap(
          {{batch}, {kvHeads, group}, {s}, {t}}, shapeOf(op.getMask()),
          {qShape[0], qShape[1], qShape[2], shapeOf(op.getK())[2]});
  }

  TensorMap q, k, v, result;
  std::optional<TensorMap> mask;
};
} // namespace

Rule AttentionOp::getShardingRule() {
  RuleBuilder builder(OpClass::Reduction);
  llvm::ArrayRef<int64_t> qShape = shapeOf(getQ());
  llvm::ArrayRef<int64_t> vShape = shapeOf(getV());
  int batch = builder.parallel(qShape[0]);
  int kvHeads = builder.parallel(vShape[1]);
  int group = builder.parallel(qShape[1] / vShape[1]);
  int s = builder.parallel(qShape[2]);
  int t = builder.whole(vShape[2]);
  int d = builder.whole(qShape[3]);
  int dv = builder.parallel(vShape[3]);
  AttentionMaps maps(*this, batch, kvHeads, group, s, t, d, dv);
  builder.operand(maps.q);
  builder.operand(maps.k);
  builder.operand(maps.v);
  if (maps.mask)
    builder.operand(*maps.mask);
  builder.result(maps.result);
  builder.linearIn({2});
  return builder.take();
}

/// Queries, and the heads of a group, each add to the gradients of keys and
/// values. A row of padding would, too.
Rule AttentionGradientOp::getShardingRule() {
  RuleBuilder builder(OpClass::Reduction);
  llvm::ArrayRef<int64_t> qShape = shapeOf(getQ());
  llvm::ArrayRef<int64_t> vShape = shapeOf(getV());
  int batch = builder.parallel(qShape[0]);
  int kvHeads = builder.parallel(vShape[1]);
  int group = builder.reduction(qShape[1] / vShape[1]);
  int s = builder.reduction(qShape[2]);
  builder.neverPad(group);
  builder.neverPad(s);
  int t = builder.whole(vShape[2]);
  int d = builder.whole(qShape[3]);
  int dv = builder.whole(vShape[3]);
  AttentionMaps maps(*this, batch, kvHeads, group, s, t, d, dv);
  builder.operand(maps.q);
  builder.operand(maps.k);
  builder.operand(maps.v);
  builder.operand(maps.result);
  builder.operand(maps.result);
  if (maps.mask)
    builder.operand(*maps.mask);
  builder.result(maps.q);
  builder.result(maps.k);
  builder.result(maps.v);
  builder.linearIn({4});
  return builder.take();
}
