//===- Broadcast.cpp - Broadcasts go below element-wise ops -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../Match.h"
#include "Patterns.h"

using namespace mlir;
using namespace ax;

namespace {

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
    Value result = recreate(rewriter, op, operands, shape);
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

/// A constant that is the same along its first dimensions, as masks expanded
/// over the batch are, is held once where it broadcasts anyway.
struct ShrinkRepeated : RewritePattern {
  ShrinkRepeated(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  static SmallVector<int64_t> distinctShape(DenseElementsAttr elements) {
    ArrayRef<int64_t> shape = elements.getType().getShape();
    SmallVector<int64_t> result(shape);
    ArrayRef<char> bytes = elements.getRawData();
    for (int64_t &size : result) {
      // Equal to itself moved by one slice: all slices are alike.
      size_t slice = size ? bytes.size() / size : 0;
      if (slice == 0 || bytes.drop_front(slice) != bytes.drop_back(slice))
        break;
      bytes = bytes.take_front(slice);
      size = 1;
    }
    return result;
  }

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const final {
    if (!isElementwise(op) || op->getNumOperands() < 2)
      return failure();
    for (OpOperand &operand : op->getOpOperands()) {
      DenseElementsAttr elements = constantElements(operand.get());
      if (!elements || elements.isSplat() || elements.getNumElements() < 2 ||
          elements.getElementType().isInteger(1))
        continue;
      SmallVector<int64_t> distinct = distinctShape(elements);
      if (ArrayRef<int64_t>(distinct) == elements.getType().getShape())
        continue;
      FailureOr<SmallVector<int64_t>> shape = SmallVector<int64_t>(distinct);
      for (OpOperand &other : op->getOpOperands())
        if (&other != &operand && succeeded(shape))
          shape = broadcastShapes(*shape, shapeOf(other.get()));
      if (failed(shape) ||
          ArrayRef<int64_t>(*shape) != shapeOf(op->getResult(0)))
        continue;
      auto type = RankedTensorType::get(distinct, elements.getElementType());
      size_t size = elements.getRawData().size() / elements.getNumElements() *
                    type.getNumElements();
      auto once = DenseElementsAttr::getFromRawBuffer(
          type, elements.getRawData().take_front(size));
      Value constant =
          ConstantOp::create(rewriter, operand.get().getLoc(), once);
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
  patterns.add<SinkBroadcast, ShrinkSplat, ShrinkRepeated, BroadcastOfOnes>(
      patterns.getContext());
}
