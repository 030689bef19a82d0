//===- ShardingRulesElementwise.cpp - Rules of element-wise ops -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RuleBuilder.h"

#include "ax/Dialect/FunctionFacts.h"

using namespace mlir;
using namespace ax;
using namespace ax::sharding;

/// Operands broadcast to the one result; every dimension is parallel.
static RuleBuilder elementwise(Operation *op) {
  RuleBuilder builder(OpClass::Elementwise);
  llvm::ArrayRef<int64_t> shape = shapeOf(op->getResult(0));
  TensorMap result = builder.allParallel(shape);
  for (Value operand : op->getOperands())
    builder.operand(broadcastMap(result, shapeOf(operand), shape));
  builder.result(std::move(result));
  return builder;
}

Rule AtMostOp::getShardingRule() { return elementwise(*this).take(); }

Rule UnaryOp::getShardingRule() {
  RuleBuilder builder = elementwise(*this);
  const UnaryFacts &facts = factsOf(getKind());
  if (facts.isLinear)
    builder.linearIn({0});
  if (facts.isNonDecreasing)
    builder.passMaxMin();
  return builder.take();
}

Rule BinaryOp::getShardingRule() {
  RuleBuilder builder = elementwise(*this);
  bool isFloat = isa<FloatType>(tensorType(getResult()).getElementType());
  switch (factsOf(getKind()).linear) {
  case FunctionLinearity::Jointly:
    builder.linearIn({0, 1});
    break;
  case FunctionLinearity::InEach:
    builder.linearIn({0});
    builder.linearIn({1});
    break;
  case FunctionLinearity::InFirstOfFloats:
    if (isFloat)
      builder.linearIn({0});
    break;
  case FunctionLinearity::None:
    break;
  }
  return builder.take();
}

Rule CompareOp::getShardingRule() { return elementwise(*this).take(); }

Rule SelectOp::getShardingRule() {
  RuleBuilder builder = elementwise(*this);
  builder.linearIn({1, 2});
  return builder.take();
}

Rule DropoutOp::getShardingRule() {
  RuleBuilder builder = elementwise(*this);
  builder.linearIn({0});
  return builder.take();
}

Rule UniformOp::getShardingRule() {
  RuleBuilder builder(OpClass::Elementwise);
  builder.operand({});
  builder.operand({});
  builder.result(builder.allParallel(shapeOf(getResult())));
  return builder.take();
}

Rule CastOp::getShardingRule() {
  RuleBuilder builder = elementwise(*this);
  auto from = dyn_cast<FloatType>(tensorType(getOperand()).getElementType());
  auto to = dyn_cast<FloatType>(tensorType(getResult()).getElementType());
  // Floats of eight bits saturate, and are no addends.
  if (!from || !to || isFloat8(from) || isFloat8(to))
    return builder.take();
  builder.passMaxMin();
  // Addends keep at most f32 (ax-sum-partials): where f64 is narrowed, only the
  // sum may be rounded, since what was exact in f64 (sums of integers) is not
  // any more when its addends are.
  if (!from.isF64() || to.isF64())
    builder.linearIn({0});
  return builder.take();
}
