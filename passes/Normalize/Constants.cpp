//===- Constants.cpp - What depends on constants only -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../KnownValue.h"
#include "../Match.h"
#include "Patterns.h"

#include "ax/Interpreter/Elements.h"

using namespace mlir;
using namespace ax;

namespace {

/// Small results of constants become constants; not copies of elements.
struct FoldConstants : RewritePattern {
  FoldConstants(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const final {
    constexpr int64_t maxElements = int64_t(1) << 16;
    if (!isa_and_nonnull<AxDialect>(op->getDialect()) ||
        op->getNumResults() != 1 || op->getNumOperands() == 0 ||
        op->getNumRegions() != 0 || isa<BroadcastOp>(op))
      return failure();
    auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
    if (!type || type.getEncoding() || type.getNumElements() > maxElements)
      return failure();
    for (Value operand : op->getOperands())
      if (!constantElements(operand))
        return failure();
    std::optional<HostTensor> value = knownValue(op->getResult(0), maxElements);
    if (!value)
      return failure();
    rewriter.replaceOpWithNewOp<ConstantOp>(
        op, interpreter::toElementsAttr(*value, getContext()));
    return success();
  }
};

} // namespace

void ax::addConstantPatterns(RewritePatternSet &patterns) {
  patterns.add<FoldConstants>(patterns.getContext());
}
