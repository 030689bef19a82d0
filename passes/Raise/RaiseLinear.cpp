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

    Value result = LinearOp::create(rewriter, loc, input, weight, transposed);
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

/// The product that gives `value`, a Linear maybe through a reshape, if nothing
/// else reads it; null where there is none.
Operation *productOf(Value value) {
  if (auto reshape = value.getDefiningOp<ReshapeOp>();
      reshape && reshape->hasOneUse() &&
      reshape.getOperand().getDefiningOp<LinearOp>())
    value = reshape.getOperand();
  Operation *op = value.getDefiningOp();
  return isa_and_present<LayerOpInterface>(op) && op->hasOneUse() ? op
                                                                  : nullptr;
}

/// The dimensions of `sum` that hold what a bias of `linear` has, which it
/// adds to, maybe after a reshape; nothing where rows and columns are mixed.
std::optional<ArrayRef<int64_t>> columnsOf(LinearOp linear, BinaryOp sum) {
  ArrayRef<int64_t> columns = shapeOf(sum);
  std::optional<DimGroups> groups = matchDims(shapeOf(linear), columns);
  if (!groups)
    return std::nullopt;
  if (groups->size() > 1)
    columns = columns.drop_front((*groups)[groups->size() - 2].second);
  while (!columns.empty() && columns.front() == 1)
    columns = columns.drop_front();
  if (ShapedType::getNumElements(columns) != shapeOf(linear).back())
    return std::nullopt;
  return columns;
}

/// `value` in the form that `findBias` knows, where `sum` adds it to `product`;
/// null where it is no bias. One number is one in any form.
Value shapedBias(OpBuilder &builder, BinaryOp sum, Operation *product,
                 Value value) {
  Location loc = sum.getLoc();
  if (constantElements(value) && shapeOf(value).empty())
    return value;
  if (auto linear = dyn_cast<LinearOp>(product)) {
    std::optional<ArrayRef<int64_t>> columns = columnsOf(linear, sum);
    Value bias =
        columns ? weightOfShape(builder, loc, value, *columns) : Value();
    return bias ? reshapeTo(builder, loc, bias, shapeOf(linear).take_back())
                : Value();
  }
  SmallVector<int64_t> channels(shapeOf(sum).size() - 1, 1);
  channels[0] = shapeOf(sum)[1];
  return weightOfShape(builder, loc, value, channels);
}

/// linear(x) + b, reshape(linear(x)) + b, conv(x) + b: the bias is added to the
/// product itself, right behind it, and both operations have the nodes of both.
void placeBias(BinaryOp op) {
  auto pair = matchCommutative(op, BinaryKind::add, productOf);
  if (!pair || pair->first.getType() != op.getType())
    return;
  Operation *product = productOf(pair->first);
  OpBuilder builder(op);
  Value bias = shapedBias(builder, op, product, pair->second);
  if (!bias)
    return;
  Location loc = mergeLocations(product, op);
  product->setLoc(loc);
  product->moveBefore(op);
  Value sum = BinaryOp::create(builder, loc, BinaryKind::add,
                               product->getResult(0), bias);
  op.getResult().replaceAllUsesWith(reshapeTo(builder, loc, sum, shapeOf(op)));
  op.erase();
  if (pair->first != product->getResult(0))
    pair->first.getDefiningOp()->erase();
}

struct RaiseLinear : ax::impl::RaiseLinearBase<RaiseLinear> {
  using RaiseLinearBase::RaiseLinearBase;

  void runOnOperation() final {
    RewritePatternSet patterns(&getContext());
    patterns.add<RaiseDot>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    SmallVector<BinaryOp> sums;
    getOperation()->walk([&](BinaryOp op) { sums.push_back(op); });
    llvm::for_each(sums, placeBias);
  }
};

} // namespace
