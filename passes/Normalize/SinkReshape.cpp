//===- SinkReshape.cpp - Reshapes go below element-wise ops -----*- C++ -*-===//

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

/// Of element-wise operations with an operand reshape(x) of the result's
/// shape: f(reshape(x), y) = reshape(f(x, y)) where y is a reshape alike or
/// broadcasts along dimensions that the reshape leaves alone.
struct SinkReshape : RewritePattern {
  SinkReshape(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const final {
    if (!isa<UnaryOp, BinaryOp, CompareOp, SelectOp, CastOp>(op))
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
    OperationState state(op->getLoc(), op->getName());
    state.addOperands(operands);
    state.addTypes(RankedTensorType::get(inner, type.getElementType()));
    state.propertiesAttr = op->getPropertiesAsAttribute();
    Value result = rewriter.create(state)->getResult(0);
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, type, result);
    return success();
  }
};

} // namespace

void ax::addSinkReshapePatterns(RewritePatternSet &patterns) {
  patterns.add<SinkReshape>(patterns.getContext());
}
