//===- SinkReshape.cpp - Reshapes go below element-wise ops -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../Match.h"
#include "Patterns.h"

using namespace mlir;
using namespace ax;

namespace {

/// How many dimensions at the end are the same.
int64_t commonSuffix(ArrayRef<int64_t> lhs, ArrayRef<int64_t> rhs) {
  int64_t count = 0;
  int64_t most = std::min(lhs.size(), rhs.size());
  while (count < most &&
         lhs[lhs.size() - 1 - count] == rhs[rhs.size() - 1 - count])
    ++count;
  return count;
}

/// Sinks reshapes behind element-wise operations with an operand reshape(x) of
/// the result's shape: f(reshape(x), y) = reshape(f(x, y)) where y is a reshape
/// alike or broadcasts along dimensions that the reshape leaves alone.
struct SinkReshape : RewritePattern {
  SinkReshape(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const final {
    if (!isElementwise(op))
      return failure();
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    ReshapeOp reshape;
    for (Value operand : op->getOperands()) {
      auto candidate = operand.getDefiningOp<ReshapeOp>();
      if (!candidate || shapeOf(candidate) != type.getShape() ||
          isWeight(candidate))
        continue;
      bool onlyUser = llvm::all_of(candidate->getUsers(),
                                   [&](Operation *user) { return user == op; });
      if (onlyUser) {
        reshape = candidate;
        break;
      }
    }
    if (!reshape)
      return failure();

    ArrayRef<int64_t> inner = shapeOf(reshape.getOperand());
    int64_t suffix = commonSuffix(inner, type.getShape());
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      ArrayRef<int64_t> shape = shapeOf(operand);
      auto other = operand.getDefiningOp<ReshapeOp>();
      if (other && shape == type.getShape() &&
          shapeOf(other.getOperand()) == inner) {
        operands.push_back(other.getOperand());
        continue;
      }
      ArrayRef<int64_t> stripped = shape;
      while (!stripped.empty() && stripped.front() == 1)
        stripped = stripped.drop_front();
      if (static_cast<int64_t>(stripped.size()) > suffix)
        return failure();
      bool fits = shape.size() <= inner.size();
      operands.push_back(
          fits ? operand
               : reshapeTo(rewriter, op->getLoc(), operand, stripped));
    }
    Value result = recreate(rewriter, op, operands, inner);
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, type, result);
    return success();
  }
};

/// The same for operations along the last dimensions, which a reshape of the
/// dimensions before them leaves alone. `firstDim` is where they begin.
template <typename Op>
struct SinkBelowRows : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  static int64_t firstDim(Op op) {
    if constexpr (std::is_same_v<Op, SoftmaxOp>)
      return op.getDim();
    else
      return op.getAxis();
  }

  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const final {
    auto reshape = op->getOperand(0).template getDefiningOp<ReshapeOp>();
    if (!reshape || !reshape->hasOneUse())
      return failure();
    ArrayRef<int64_t> from = shapeOf(reshape.getOperand());
    ArrayRef<int64_t> to = shapeOf(reshape);
    int64_t rows = static_cast<int64_t>(to.size()) - firstDim(op);
    if (commonSuffix(from, to) < rows)
      return failure();
    IntegerAttr first =
        rewriter.getI64IntegerAttr(static_cast<int64_t>(from.size()) - rows);
    Value inner = reshape.getOperand();
    Value result;
    if constexpr (std::is_same_v<Op, SoftmaxOp>)
      result = Op::create(rewriter, op.getLoc(), inner, first, op.getLogAttr());
    else
      result = Op::create(rewriter, op.getLoc(), inner, op.getScale(),
                          op.getBias(), first, op.getEpsilonAttr());
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), result);
    return success();
  }
};

} // namespace

void ax::addSinkReshapePatterns(RewritePatternSet &patterns) {
  patterns.add<SinkReshape, SinkBelowRows<SoftmaxOp>,
               SinkBelowRows<LayerNormOp>, SinkBelowRows<RMSNormOp>>(
      patterns.getContext());
}
