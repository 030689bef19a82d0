//===- JoinBiases.cpp - Linears and convolutions with their bias ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../StageAndAction.h"
#include "ax/Passes/Passes.h"

#include "../Match.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace ax {
#define GEN_PASS_DEF_JOINBIASES
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;

namespace {

/// The linear (conv) that computes `value` for one user in the same stage and
/// pass, all of it: an addend of a sum over ranks is not to be touched.
template <typename Op>
Op matchWhole(Value value, Operation *user) {
  auto op = value.getDefiningOp<Op>();
  if (!op || !op->hasOneUse() || !haveSameStageAndAction(op, user))
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
    if (producer.getBias() || !isBiasOf(producer, tensorType(bias).getShape()))
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

struct JoinBiases : ax::impl::JoinBiasesBase<JoinBiases> {
  using JoinBiasesBase::JoinBiasesBase;

  void runOnOperation() final {
    RewritePatternSet patterns(&getContext());
    patterns.add<TakeBias<LinearOp>, TakeBias<ConvOp>>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
