//===- RaiseDropout.cpp - Dropout of branches from primitives -------------===//
//
// Stochastic depth: Huang et al., Deep networks with stochastic depth,
// arXiv 1603.09382.
//
//===----------------------------------------------------------------------===//

#include "ax/Dialect/Evaluation.h"
#include "ax/Passes/Passes.h"

#include "../Match.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace ax {
#define GEN_PASS_DEF_RAISEDROPOUT
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;

namespace {

/// The operation of a value that nothing else uses.
template <typename OpTy>
OpTy onlyUseOf(Value value) {
  return value.hasOneUse() ? value.getDefiningOp<OpTy>() : OpTy();
}

struct RaiseScaledMask : OpRewritePattern<BinaryOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(BinaryOp op,
                                PatternRewriter &rewriter) const final {
    std::optional<WithNumber> scaled = matchScaled(op.getResult());
    auto mask = scaled ? onlyUseOf<CastOp>(scaled->value) : CastOp();
    auto isKept = mask ? onlyUseOf<CompareOp>(mask.getOperand()) : CompareOp();
    if (!isKept || isKept.getKind() != CompareKind::lt)
      return failure();
    Value number = isKept.getLhs();
    if (auto cast = onlyUseOf<CastOp>(number))
      number = cast.getOperand();
    auto uniform = onlyUseOf<UniformOp>(number);
    std::optional<double> kept = splatNumber(isKept.getRhs());
    if (!uniform || !kept || !(*kept > 0 && *kept <= 1) ||
        std::abs(*kept * scaled->number - 1) > 1e-3 ||
        shapeOf(uniform.getResult()) != shapeOf(op.getResult()))
      return failure();
    Value ones = createSplat(rewriter, op.getLoc(), tensorType(op.getResult()),
                             /*number=*/1);
    if (op->getParentOfType<ProgramOp>().getSymName() == evaluationProgram)
      rewriter.replaceOp(op, ones);
    else
      rewriter.replaceOpWithNewOp<DropoutOp>(
          op, ones, uniform.getSeed(), uniform.getStep(), APFloat(1 - *kept),
          uniform.getId());
    return success();
  }
};

struct RaiseDropout : ax::impl::RaiseDropoutBase<RaiseDropout> {
  using RaiseDropoutBase::RaiseDropoutBase;

  void runOnOperation() final {
    RewritePatternSet patterns(&getContext());
    patterns.add<RaiseScaledMask>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
