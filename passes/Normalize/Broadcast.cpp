//===- Broadcast.cpp - Broadcasts go below element-wise ops -----*- C++ -*-===//

#include "../Match.h"
#include "Patterns.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace ax;

namespace {

bool isElementwise(Operation *op) {
  return isa<UnaryOp, BinaryOp, CompareOp, SelectOp, CastOp>(op);
}

Operation *cloneWith(PatternRewriter &rewriter, Operation *op,
                     ArrayRef<Value> operands, ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(
      shape,
      cast<RankedTensorType>(op->getResult(0).getType()).getElementType());
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(operands);
  state.addTypes(type);
  state.addAttributes(op->getAttrs());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  return rewriter.create(state);
}

/// f(broadcast(x), y) is f(x, y), broadcast only if y does not have the shape.
struct SinkBroadcast : RewritePattern {
  SinkBroadcast(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const final {
    if (!isElementwise(op))
      return failure();
    bool found = false;
    SmallVector<Value> operands;
    SmallVector<int64_t> shape;
    for (Value operand : op->getOperands()) {
      if (auto broadcast = operand.getDefiningOp<BroadcastOp>()) {
        operand = broadcast.getOperand();
        found = true;
      }
      operands.push_back(operand);
      FailureOr<SmallVector<int64_t>> joint =
          broadcastShapes(shape, shapeOf(operand));
      if (failed(joint))
        return failure();
      shape = *joint;
    }
    if (!found)
      return failure();
    Value result = cloneWith(rewriter, op, operands, shape)->getResult(0);
    Type type = op->getResult(0).getType();
    if (result.getType() != type)
      result = BroadcastOp::create(rewriter, op->getLoc(), type, result);
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// A constant of one number becomes a scalar where it broadcasts anyway.
struct ShrinkSplat : RewritePattern {
  ShrinkSplat(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const final {
    if (!isElementwise(op) || op->getNumOperands() < 2)
      return failure();
    for (OpOperand &operand : op->getOpOperands()) {
      DenseElementsAttr elements = constantElements(operand.get());
      if (!elements || !elements.isSplat() || elements.getType().getRank() == 0)
        continue;
      SmallVector<int64_t> shape;
      for (OpOperand &other : op->getOpOperands())
        if (&other != &operand)
          if (auto joint = broadcastShapes(shape, shapeOf(other.get()));
              succeeded(joint))
            shape = *joint;
      if (ArrayRef<int64_t>(shape) != shapeOf(op->getResult(0)))
        continue;
      auto scalar = RankedTensorType::get({}, elements.getElementType());
      Value constant = ConstantOp::create(rewriter, operand.get().getLoc(),
                                          elements.resizeSplat(scalar));
      rewriter.modifyOpInPlace(op, [&] { operand.set(constant); });
      return success();
    }
    return failure();
  }
};

/// A broadcast that only adds dimensions of size 1.
struct BroadcastOfOnes : OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BroadcastOp op,
                                PatternRewriter &rewriter) const final {
    if (tensorType(op.getOperand()).getNumElements() !=
        tensorType(op).getNumElements())
      return failure();
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), op.getOperand());
    return success();
  }
};

} // namespace

void ax::addBroadcastPatterns(RewritePatternSet &patterns) {
  patterns.add<SinkBroadcast, ShrinkSplat, BroadcastOfOnes>(
      patterns.getContext());
}
