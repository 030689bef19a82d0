//===- FuseEpilogue.cpp - What follows a linear or conv ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../StageAndAction.h"
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

/// The linear (conv) that computes `value` for one user in the same stage and
/// pass, all of it: an addend of a sum over ranks is not to be touched.
template <typename Op>
Op matchWhole(Value value, Operation *user) {
  auto op = value.getDefiningOp<Op>();
  if (!op || !op->hasOneUse() || op.getResidual() ||
      !haveSameStageAndAction(op, user))
    return {};
  sharding::Mesh mesh = getMesh(op);
  return getLayout(tensorType(value), mesh).partial.empty() ? op : Op();
}

/// Of a linear's columns, of a conv's channels.
bool isBiasOf(LinearOp op, ArrayRef<int64_t> shape) {
  return shape.size() == 1 && shape[0] == op.getN();
}
bool isBiasOf(ConvOp op, ArrayRef<int64_t> shape) {
  RankedTensorType type = tensorType(op.getResult());
  return static_cast<int64_t>(shape.size()) == type.getRank() - 1 &&
         shape[0] == type.getDimSize(1) &&
         llvm::all_of(shape.drop_front(), [](int64_t n) { return n == 1; });
}

/// The bias that Shard took off, where it need not stay apart.
template <typename Op>
struct TakeBias : OpRewritePattern<BinaryOp> {
  using OpRewritePattern<BinaryOp>::OpRewritePattern;
  LogicalResult matchAndRewrite(BinaryOp op,
                                PatternRewriter &rewriter) const final {
    auto pair = matchCommutative(op, BinaryKind::add, [&](Value value) {
      return bool(matchWhole<Op>(value, op));
    });
    if (!pair || pair->first.getType() != op.getType())
      return failure();
    Op producer = matchWhole<Op>(pair->first, op);
    Value bias = pair->second;
    if (producer.getBias() || producer.getActivation() ||
        !isBiasOf(producer, tensorType(bias).getShape()))
      return failure();
    if (tensorType(bias).getRank() != 1) {
      auto reshape = bias.getDefiningOp<ReshapeOp>();
      if (!reshape || tensorType(reshape.getOperand()).getRank() != 1)
        return failure();
      bias = reshape.getOperand();
    }
    rewriter.modifyOpInPlace(producer, [&] {
      producer->moveBefore(op);
      producer.getBiasMutable().assign(bias);
      producer->setLoc(mergeLocations(producer, op));
    });
    rewriter.replaceOp(op, producer.getResult());
    return success();
  }
};

template <typename Op>
struct TakeActivation : OpRewritePattern<UnaryOp> {
  using OpRewritePattern<UnaryOp>::OpRewritePattern;
  LogicalResult matchAndRewrite(UnaryOp op,
                                PatternRewriter &rewriter) const final {
    Op producer = matchWhole<Op>(op.getOperand(), op);
    if (!producer || producer.getActivation() || !isActivation(op.getKind()) ||
        op.getOperand().getType() != op.getType())
      return failure();
    rewriter.modifyOpInPlace(producer, [&] {
      producer.setActivationAttr(op.getKindAttr());
      producer->setLoc(mergeLocations(producer, op));
    });
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
      producer->setLoc(mergeLocations(producer, op));
    });
    rewriter.replaceOp(op, producer.getResult());
    return success();
  }
};

struct FuseEpilogue : ax::impl::FuseEpilogueBase<FuseEpilogue> {
  using FuseEpilogueBase::FuseEpilogueBase;

  void runOnOperation() final {
    RewritePatternSet patterns(&getContext());
    patterns.add<TakeBias<LinearOp>, TakeBias<ConvOp>, TakeActivation<LinearOp>,
                 TakeActivation<ConvOp>, TakeResidual<LinearOp>,
                 TakeResidual<ConvOp>>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
