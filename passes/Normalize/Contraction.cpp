//===- Contraction.cpp - Dimensions of contractions -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../Match.h"
#include "Patterns.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace ax;

namespace {

SmallVector<int64_t> mapDims(ArrayRef<int64_t> dims,
                             ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> result;
  for (int64_t dim : dims)
    result.push_back(permutation[dim]);
  return result;
}

/// Whether the dimensions that are neither batch nor contracted keep their
/// order without the transpose.
bool keepsFreeOrder(ArrayRef<int64_t> permutation, ArrayRef<int64_t> batch,
                    ArrayRef<int64_t> contract) {
  int64_t last = -1;
  for (auto [i, dim] : llvm::enumerate(permutation)) {
    if (llvm::is_contained(batch, static_cast<int64_t>(i)) ||
        llvm::is_contained(contract, static_cast<int64_t>(i)))
      continue;
    if (dim < last)
      return false;
    last = dim;
  }
  return true;
}

/// `x` of shape [..., k], its leading dimensions taken apart again where a
/// reshape has merged them.
Value unmergeLeading(PatternRewriter &rewriter, Location loc, Value x) {
  auto reshape = x.getDefiningOp<ReshapeOp>();
  if (!reshape)
    return x;
  ArrayRef<int64_t> source = shapeOf(reshape.getOperand()), merged = shapeOf(x);
  std::optional<DimGroups> groups = matchDims(source, merged);
  int64_t lastDim = static_cast<int64_t>(merged.size()) - 1;
  if (!groups || groups->size() < 2 ||
      (*groups)[groups->size() - 2].second != lastDim)
    return x;
  ArrayRef<int64_t> leading =
      source.take_front((*groups)[groups->size() - 2].first);
  if (leading.size() <= merged.size() - 1)
    return x;
  SmallVector<int64_t> shape(leading);
  shape.push_back(merged.back());
  return reshapeTo(rewriter, loc, reshape.getOperand(), shape);
}

/// A linear on rows that a reshape has merged: exporters flatten batch and
/// sequence around every Gemm. Apart, each can be split by itself.
struct UnmergeLinear : OpRewritePattern<LinearOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(LinearOp op,
                                PatternRewriter &rewriter) const final {
    Value x = unmergeLeading(rewriter, op.getLoc(), op.getX());
    if (x == op.getX())
      return failure();
    Value result = LinearOp::create(rewriter, op.getLoc(), x, op.getW(),
                                    op.getTransposeW());
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), result);
    return success();
  }
};

struct FoldTranspose : OpRewritePattern<DotOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DotOp op,
                                PatternRewriter &rewriter) const final {
    auto foldable = [](Value operand, ArrayRef<int64_t> batch,
                       ArrayRef<int64_t> contract) {
      auto transpose = operand.getDefiningOp<TransposeOp>();
      return transpose &&
                     keepsFreeOrder(transpose.getPermutation(), batch, contract)
                 ? transpose
                 : TransposeOp();
    };
    TransposeOp lhs =
        foldable(op.getLhs(), op.getLhsBatch(), op.getLhsContract());
    TransposeOp rhs =
        foldable(op.getRhs(), op.getRhsBatch(), op.getRhsContract());
    if (!lhs && !rhs)
      return failure();
    rewriter.modifyOpInPlace(op, [&] {
      if (lhs) {
        ArrayRef<int64_t> permutation = lhs.getPermutation();
        op.setLhsBatch(mapDims(op.getLhsBatch(), permutation));
        op.setLhsContract(mapDims(op.getLhsContract(), permutation));
        op.getLhsMutable().assign(lhs.getOperand());
      }
      if (rhs) {
        ArrayRef<int64_t> permutation = rhs.getPermutation();
        op.setRhsBatch(mapDims(op.getRhsBatch(), permutation));
        op.setRhsContract(mapDims(op.getRhsContract(), permutation));
        op.getRhsMutable().assign(rhs.getOperand());
      }
    });
    return success();
  }
};

} // namespace

void ax::addContractionPatterns(RewritePatternSet &patterns) {
  patterns.add<FoldTranspose, UnmergeLinear>(patterns.getContext());
}
