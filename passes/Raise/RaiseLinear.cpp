//===- RaiseLinear.cpp - Contractions with a weight -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Passes/Passes.h"

#include "../Match.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/STLExtras.h"

namespace ax {
#define GEN_PASS_DEF_RAISELINEAR
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;

namespace {

/// One side of a contraction.
struct Side {
  Value value;
  SmallVector<int64_t> contract;
  SmallVector<int64_t> free;

  Side(Value value, ArrayRef<int64_t> contract)
      : value(value), contract(contract) {
    for (int64_t dim = 0, rank = shapeOf(value).size(); dim < rank; ++dim)
      if (!llvm::is_contained(contract, dim))
        free.push_back(dim);
  }
  SmallVector<int64_t> sizes(ArrayRef<int64_t> dims) const {
    SmallVector<int64_t> result;
    for (int64_t dim : dims)
      result.push_back(shapeOf(value)[dim]);
    return result;
  }
};

struct RaiseDot : OpRewritePattern<DotOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DotOp op,
                                PatternRewriter &rewriter) const final {
    if (!isa<FloatType>(elementType(op)) || !op.getLhsBatch().empty() ||
        op.getLhsContract().empty())
      return failure();
    bool weightLeft = isWeight(op.getLhs());
    if (weightLeft == isWeight(op.getRhs()))
      return failure();
    Side x(op.getLhs(), op.getLhsContract());
    Side w(op.getRhs(), op.getRhsContract());
    if (weightLeft)
      std::swap(x, w);

    // Contracted dimensions in the order in which the weight has them.
    auto order = llvm::to_vector(llvm::seq<size_t>(0, w.contract.size()));
    llvm::sort(order, [&](size_t a, size_t b) {
      return w.contract[a] < w.contract[b];
    });
    SmallVector<int64_t> xPermutation = x.free, wContract;
    for (size_t i : order) {
      xPermutation.push_back(x.contract[i]);
      wContract.push_back(w.contract[i]);
    }
    int64_t k = ShapedType::getNumElements(w.sizes(wContract)),
            n = ShapedType::getNumElements(w.sizes(w.free));

    Location loc = op.getLoc();
    Value input = transposeTo(rewriter, loc, x.value, xPermutation);
    SmallVector<int64_t> xShape = x.sizes(x.free);
    xShape.push_back(k);
    input = reshapeTo(rewriter, loc, input, xShape);

    bool transposed = !w.free.empty() && w.free.back() < wContract.front();
    Value weight = w.value;
    if (!transposed) {
      SmallVector<int64_t> wPermutation = wContract;
      llvm::append_range(wPermutation, w.free);
      weight = transposeTo(rewriter, loc, weight, wPermutation);
    }
    weight = reshapeTo(rewriter, loc, weight,
                       transposed ? ArrayRef<int64_t>{n, k}
                                  : ArrayRef<int64_t>{k, n});

    Value result =
        LinearOp::create(rewriter, loc, input, weight, Value(), transposed);
    SmallVector<int64_t> shape = x.sizes(x.free);
    llvm::append_range(shape, w.sizes(w.free));
    result = reshapeTo(rewriter, loc, result, shape);
    if (weightLeft) {
      SmallVector<int64_t> permutation;
      int64_t numX = x.free.size(), rank = shape.size();
      for (int64_t dim = numX; dim < rank; ++dim)
        permutation.push_back(dim);
      for (int64_t dim = 0; dim < numX; ++dim)
        permutation.push_back(dim);
      result = transposeTo(rewriter, loc, result, permutation);
    }
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// linear(x) + b, or reshape(linear(x)) + b.
struct TakeBias : OpRewritePattern<BinaryOp> {
  using OpRewritePattern::OpRewritePattern;

  static LinearOp matchLinear(Value value) {
    if (auto reshape = value.getDefiningOp<ReshapeOp>();
        reshape && reshape->hasOneUse())
      value = reshape.getOperand();
    auto linear = value.getDefiningOp<LinearOp>();
    bool fits = linear && linear->hasOneUse() && !linear.getBias();
    return fits ? linear : LinearOp();
  }

  LogicalResult matchAndRewrite(BinaryOp op,
                                PatternRewriter &rewriter) const final {
    auto pair = matchCommutative(op, BinaryKind::add, [](Value value) {
      return bool(matchLinear(value));
    });
    if (!pair || pair->first.getType() != op.getType())
      return failure();
    LinearOp linear = matchLinear(pair->first);
    int64_t n = shapeOf(linear).back();
    // The dimensions that hold the n results of one row.
    ArrayRef<int64_t> columns = shapeOf(op);
    std::optional<DimGroups> groups = matchDims(shapeOf(linear), columns);
    if (!groups)
      return failure();
    if (groups->size() > 1)
      columns = columns.drop_front((*groups)[groups->size() - 2].second);
    while (!columns.empty() && columns.front() == 1)
      columns = columns.drop_front();
    if (ShapedType::getNumElements(columns) != n)
      return failure();
    Location loc = op.getLoc();
    Value bias = weightOfShape(rewriter, loc, pair->second, columns);
    if (!bias)
      return failure();
    bias = reshapeTo(rewriter, loc, bias, {n});
    Value result =
        LinearOp::create(rewriter, mergeLocations(linear, op), linear.getX(),
                         linear.getW(), bias, linear.getTransposeW());
    rewriter.replaceOp(op, reshapeTo(rewriter, loc, result, shapeOf(op)));
    return success();
  }
};

/// conv(x) + b, one number for each channel.
struct TakeConvBias : OpRewritePattern<BinaryOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BinaryOp op,
                                PatternRewriter &rewriter) const final {
    auto pair = matchCommutative(op, BinaryKind::add, [](Value value) {
      auto conv = value.getDefiningOp<ConvOp>();
      return conv && conv->hasOneUse() && !conv.getBias();
    });
    if (!pair || pair->first.getType() != op.getType())
      return failure();
    ArrayRef<int64_t> shape = shapeOf(op);
    SmallVector<int64_t> channels(shape.size() - 1, 1);
    channels[0] = shape[1];
    Value bias = weightOfShape(rewriter, op.getLoc(), pair->second, channels);
    if (!bias)
      return failure();
    auto conv = pair->first.getDefiningOp<ConvOp>();
    bias = reshapeTo(rewriter, op.getLoc(), bias, {shape[1]});
    auto result = ConvOp::create(rewriter, mergeLocations(conv, op),
                                 conv.getX(), conv.getW(), bias,
                                 conv.getStridesAttr(), conv.getPadsAttr(),
                                 conv.getDilationsAttr(), conv.getGroupsAttr());
    rewriter.replaceOp(op, result);
    return success();
  }
};

struct RaiseLinear : ax::impl::RaiseLinearBase<RaiseLinear> {
  using RaiseLinearBase::RaiseLinearBase;

  void runOnOperation() final {
    RewritePatternSet patterns(&getContext());
    patterns.add<RaiseDot, TakeBias, TakeConvBias>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
