//===- Norm.cpp - Gradients of rows ---------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// softmax from its result; norms from their operand: the statistics of a row
// are computed again rather than kept.
//
//===----------------------------------------------------------------------===//

#include "../GradientRules.h"

using namespace mlir;
using namespace ax;

static LogicalResult softmax(SoftmaxOp op, GradientBuilder &g) {
  int64_t dim = op.getDim();
  g.give(op.getOperandMutable(), [&] {
    Value y = g.wide(op.getResult()), dy = g.wide(g.ofResult());
    Value dx;
    if (op.getLog())
      dx = g.sub(dy, g.mul(g.unary(UnaryKind::exp, y), g.sum(dy, dim)));
    else
      dx = g.mul(y, g.sub(dy, g.sum(g.mul(dy, y), dim)));
    return g.cast(dx, elementType(op.getOperand()));
  });
  return success();
}

static LogicalResult fakeQuantize(FakeQuantizeOp op, GradientBuilder &g) {
  g.give(op.getOperandMutable(), [&] { return g.ofResult(); });
  return success();
}

template <typename NormOp>
static LogicalResult norm(NormOp op, GradientBuilder &g) {
  constexpr bool centres = std::is_same_v<NormOp, LayerNormOp>;
  ArrayRef<int64_t> shape = shapeOf(op.getX()),
                    row = shape.drop_front(op.getAxis());
  SmallVector<int64_t> dims = dimsFrom(op.getAxis(), shape.size());
  double count = 1;
  for (int64_t size : row)
    count *= static_cast<double>(size);
  auto mean = [&](Value v) { return g.mul(g.sum(v, dims), 1 / count); };
  auto narrow = [&](Value v) { return g.cast(v, elementType(op.getX())); };

  Value dy = g.wide(g.ofResult());
  g.give(op.getBiasMutable(), [&] { return narrow(g.sumTo(dy, row)); });
  if (!g.isWanted(op.getXMutable()) && !g.isWanted(op.getScaleMutable()))
    return success();
  Value x = g.wide(op.getX());
  if (centres)
    x = g.sub(x, mean(x));
  Value factor =
      g.unary(UnaryKind::rsqrt,
              g.add(mean(g.mul(x, x)), op.getEpsilon().convertToDouble()));
  Value normal = g.mul(x, factor);
  g.give(op.getScaleMutable(),
         [&] { return narrow(g.sumTo(g.mul(dy, normal), row)); });
  g.give(op.getXMutable(), [&] {
    Value inner = op.getScale() ? g.mul(dy, g.wide(op.getScale())) : dy;
    Value rest = g.mul(normal, mean(g.mul(inner, normal)));
    if (centres)
      rest = g.add(rest, mean(inner));
    return narrow(g.mul(factor, g.sub(inner, rest)));
  });
  return success();
}

void ax::attachNormGradients(MLIRContext &context) {
  attachGradient<SoftmaxOp, softmax>(context);
  attachGradient<FakeQuantizeOp, fakeQuantize>(context);
  attachGradient<LayerNormOp, norm<LayerNormOp>>(context);
  attachGradient<RMSNormOp, norm<RMSNormOp>>(context);
}
