//===- FuseEpilogue.cpp - What follows a linear or conv ---------*- C++ -*-===//

#include "ax/Passes/Passes.h"

#include "../Match.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace ax {
#define GEN_PASS_DEF_FUSEEPILOGUE
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;

namespace {

/// Functions that matrix libraries apply to a tile before it is stored.
bool isActivation(UnaryKind kind) {
  switch (kind) {
  case UnaryKind::relu:
  case UnaryKind::gelu:
  case UnaryKind::gelu_tanh:
  case UnaryKind::silu:
  case UnaryKind::sigmoid:
  case UnaryKind::tanh:
    return true;
  default:
    return false;
  }
}

/// The linear (conv) that computes `value` for one user in the same stage, all
/// of it: an addend of a sum over ranks is not to be touched.
template <typename Op>
Op matchWhole(Value value, Operation *user) {
  auto op = value.getDefiningOp<Op>();
  if (!op || !op->hasOneUse() || op.getResidual() ||
      op->getDiscardableAttr("stage") != user->getDiscardableAttr("stage"))
    return {};
  sharding::Mesh mesh = getMesh(op);
  return getLayout(tensorType(value), mesh).partial.empty() ? op : Op();
}

template <typename Op>
struct TakeActivation : OpRewritePattern<UnaryOp> {
  using OpRewritePattern<UnaryOp>::OpRewritePattern;
  LogicalResult matchAndRewrite(UnaryOp op,
                                PatternRewriter &rewriter) const final {
    Op producer = matchWhole<Op>(op.getOperand(), op);
    if (!producer || producer.getActivation() || !isActivation(op.getKind()) ||
        op.getOperand().getType() != op.getType())
      return failure();
    rewriter.modifyOpInPlace(
        producer, [&] { producer.setActivationAttr(op.getKindAttr()); });
    rewriter.replaceOp(op, producer.getResult());
    return success();
  }
};

template <typename Op>
struct TakeResidual : OpRewritePattern<BinaryOp> {
  using OpRewritePattern<BinaryOp>::OpRewritePattern;
  LogicalResult matchAndRewrite(BinaryOp op,
                                PatternRewriter &rewriter) const final {
    auto pair = matchCommutative(op, BinaryKind::add, [&](Value value) {
      return bool(matchWhole<Op>(value, op));
    });
    if (!pair || pair->first.getType() != op.getType() ||
        pair->second.getType() != op.getType() || pair->first == pair->second)
      return failure();
    Op producer = matchWhole<Op>(pair->first, op);
    rewriter.modifyOpInPlace(producer, [&] {
      // The residual may be computed later than the linear was.
      producer->moveBefore(op);
      producer.getResidualMutable().assign(pair->second);
    });
    rewriter.replaceOp(op, producer.getResult());
    return success();
  }
};

struct FuseEpilogue : ax::impl::FuseEpilogueBase<FuseEpilogue> {
  using FuseEpilogueBase::FuseEpilogueBase;

  void runOnOperation() final {
    RewritePatternSet patterns(&getContext());
    patterns.add<TakeActivation<LinearOp>, TakeActivation<ConvOp>,
                 TakeResidual<LinearOp>, TakeResidual<ConvOp>>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
