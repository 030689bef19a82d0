//===- Movement.cpp - Chains of reshapes, transposes, casts -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../Match.h"
#include "Patterns.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace ax;

namespace {

/// Operations that give back their operand when the type does not change.
template <typename Op>
struct DropIdentity : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const final {
    if (op.getOperand().getType() != op.getType())
      return failure();
    if constexpr (std::is_same_v<Op, SliceOp>) {
      // Of a dimension of one element any step gives the same.
      for (auto [step, size] : llvm::zip(op.getSteps(), shapeOf(op)))
        if (step < 0 && size > 1)
          return failure();
    }
    rewriter.replaceOp(op, op.getOperand());
    return success();
  }
};

/// reshape(reshape(x)), broadcast(broadcast(x)): the outer one alone.
template <typename Op>
struct SkipInner : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const final {
    auto inner = op.getOperand().template getDefiningOp<Op>();
    if (!inner)
      return failure();
    rewriter.replaceOpWithNewOp<Op>(op, op.getType(), inner.getOperand());
    return success();
  }
};

/// reshape, broadcast, transpose, slice, cast of a constant of one number.
template <typename Op>
struct MoveSplat : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const final {
    DenseElementsAttr elements = constantElements(op.getOperand());
    if (!elements || !elements.isSplat())
      return failure();
    auto type = cast<RankedTensorType>(op.getType());
    if (type.getElementType() == elements.getElementType()) {
      rewriter.replaceOpWithNewOp<ConstantOp>(
          op, elements.resizeSplat(cast<ShapedType>(type)));
      return success();
    }
    std::optional<double> number = splatNumber(op);
    if (!number)
      return failure();
    rewriter.replaceOp(op, createSplat(rewriter, op.getLoc(), type, *number));
    return success();
  }
};

struct ReshapeConstant : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op,
                                PatternRewriter &rewriter) const final {
    DenseElementsAttr elements = constantElements(op.getOperand());
    if (!elements || elements.isSplat())
      return failure();
    rewriter.replaceOpWithNewOp<ConstantOp>(
        op, elements.reshape(cast<ShapedType>(op.getType())));
    return success();
  }
};

struct DropIdentityTranspose : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op,
                                PatternRewriter &rewriter) const final {
    if (!isIdentity(op.getPermutation()))
      return failure();
    rewriter.replaceOp(op, op.getOperand());
    return success();
  }
};

struct MergeTransposes : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op,
                                PatternRewriter &rewriter) const final {
    auto inner = op.getOperand().getDefiningOp<TransposeOp>();
    if (!inner)
      return failure();
    SmallVector<int64_t> permutation;
    for (int64_t dim : op.getPermutation())
      permutation.push_back(inner.getPermutation()[dim]);
    rewriter.replaceOpWithNewOp<TransposeOp>(op, inner.getOperand(),
                                             permutation);
    return success();
  }
};

/// A transpose that moves only dimensions of size 1 is a reshape.
struct TransposeOfOnes : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op,
                                PatternRewriter &rewriter) const final {
    if (isIdentity(op.getPermutation()) ||
        !keepsOrder(shapeOf(op.getOperand()), op.getPermutation()))
      return failure();
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), op.getOperand());
    return success();
  }
};

/// reshape(transpose(reshape(x))) where the inner reshape only merges
/// dimensions: reshape(transpose(x)). Exporters write it around the transposed
/// keys of attention.
struct TransposeUnmerged : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op,
                                PatternRewriter &rewriter) const final {
    auto transpose = op.getOperand().getDefiningOp<TransposeOp>();
    if (!transpose)
      return failure();
    auto inner = transpose.getOperand().getDefiningOp<ReshapeOp>();
    if (!inner)
      return failure();
    std::optional<DimGroups> groups =
        matchDims(shapeOf(inner.getOperand()), shapeOf(inner));
    if (!groups || groups->size() != shapeOf(inner).size())
      return failure();
    SmallVector<int64_t> permutation;
    for (int64_t dim : transpose.getPermutation()) {
      int64_t begin = dim == 0 ? 0 : (*groups)[dim - 1].first;
      for (int64_t i = begin; i < (*groups)[dim].first; ++i)
        permutation.push_back(i);
    }
    Value moved = transposeTo(rewriter, transpose.getLoc(), inner.getOperand(),
                              permutation);
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), moved);
    return success();
  }
};

/// slice(slice(x)).
struct MergeSlices : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp op,
                                PatternRewriter &rewriter) const final {
    auto inner = op.getOperand().getDefiningOp<SliceOp>();
    if (!inner)
      return failure();
    SmallVector<int64_t> starts, steps;
    for (int64_t i = 0, e = shapeOf(op).size(); i < e; ++i) {
      starts.push_back(inner.getStarts()[i] +
                       op.getStarts()[i] * inner.getSteps()[i]);
      steps.push_back(op.getSteps()[i] * inner.getSteps()[i]);
    }
    rewriter.replaceOpWithNewOp<SliceOp>(op, op.getType(), inner.getOperand(),
                                         starts, steps);
    return success();
  }
};

struct DropTrivialConcat : OpRewritePattern<ConcatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConcatOp op,
                                PatternRewriter &rewriter) const final {
    SmallVector<Value> operands;
    for (Value operand : op.getOperands())
      if (shapeOf(operand)[op.getDim()] != 0)
        operands.push_back(operand);
    if (operands.size() == 1) {
      rewriter.replaceOp(op, operands);
      return success();
    }
    if (operands.empty() || operands.size() == op.getOperands().size())
      return failure();
    rewriter.replaceOpWithNewOp<ConcatOp>(op, operands, op.getDim());
    return success();
  }
};

struct DropEmptyPad : OpRewritePattern<PadOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(PadOp op,
                                PatternRewriter &rewriter) const final {
    if (op.getOperand().getType() != op.getType())
      return failure();
    rewriter.replaceOp(op, op.getOperand());
    return success();
  }
};

/// Whether every number of type `from` exists in type `to`.
bool holdsAll(Type from, Type to) {
  auto fromInt = dyn_cast<IntegerType>(from), toInt = dyn_cast<IntegerType>(to);
  auto fromFloat = dyn_cast<FloatType>(from), toFloat = dyn_cast<FloatType>(to);
  if (fromFloat && toFloat)
    return llvm::APFloat::isRepresentableBy(fromFloat.getFloatSemantics(),
                                            toFloat.getFloatSemantics());
  if (!fromInt)
    return false;
  // i1 holds 0 and 1.
  bool fromSigned = !fromInt.isUnsigned() && fromInt.getWidth() > 1;
  unsigned digits = fromInt.getWidth() - (fromSigned ? 1 : 0);
  if (toFloat)
    return digits <= toFloat.getFPMantissaWidth();
  if (!toInt || (fromSigned && toInt.isUnsigned()))
    return false;
  bool toSigned = !toInt.isUnsigned() && toInt.getWidth() > 1;
  return digits <= toInt.getWidth() - (toSigned ? 1 : 0);
}

/// Neighbours, each with zeros where the other is, added: a concatenation. So
/// look the gradients of slices, brought together.
struct ConcatOfPads : OpRewritePattern<BinaryOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BinaryOp op,
                                PatternRewriter &rewriter) const final {
    auto first = op.getLhs().getDefiningOp<PadOp>();
    auto second = op.getRhs().getDefiningOp<PadOp>();
    if (op.getKind() != BinaryKind::add || !isZeros(first) ||
        !isZeros(second) || first.getType() != second.getType())
      return failure();
    std::optional<int64_t> dim = onlyDim(first);
    if (!dim || dim != onlyDim(second))
      return failure();
    auto end = [&](PadOp pad) {
      return pad.getLow()[*dim] + shapeOf(pad.getOperand())[*dim];
    };
    if (end(second) == first.getLow()[*dim])
      std::swap(first, second);
    if (end(first) != second.getLow()[*dim])
      return failure();
    Value whole = ConcatOp::create(
        rewriter, op.getLoc(),
        ValueRange{first.getOperand(), second.getOperand()}, *dim);
    rewriter.replaceOpWithNewOp<PadOp>(op, op.getType(), whole,
                                       first.getValue(), first.getLow(),
                                       second.getHigh(), PadMode::constant);
    return success();
  }

private:
  static bool isZeros(PadOp pad) {
    return pad && pad.getMode() == PadMode::constant &&
           isExactSplat(pad.getValue(), 0);
  }
  /// The dimension that alone is padded.
  static std::optional<int64_t> onlyDim(PadOp pad) {
    std::optional<int64_t> found;
    for (auto [dim, low] : llvm::enumerate(pad.getLow())) {
      if (low == 0 && pad.getHigh()[dim] == 0)
        continue;
      if (found)
        return std::nullopt;
      found = dim;
    }
    return found;
  }
};

/// cast(cast(x)) where the inner one loses nothing.
struct MergeCasts : OpRewritePattern<CastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(CastOp op,
                                PatternRewriter &rewriter) const final {
    auto inner = op.getOperand().getDefiningOp<CastOp>();
    if (!inner ||
        !holdsAll(elementType(inner.getOperand()), elementType(inner)))
      return failure();
    // An integer that passes a float on its way to another integer saturates
    // where a direct cast wraps.
    if (isa<FloatType>(elementType(inner)) &&
        isa<IntegerType>(elementType(inner.getOperand())) &&
        isa<IntegerType>(elementType(op)) &&
        !holdsAll(elementType(inner.getOperand()), elementType(op)) &&
        !elementType(op).isInteger(1))
      return failure();
    rewriter.replaceOpWithNewOp<CastOp>(op, op.getType(), inner.getOperand());
    return success();
  }
};

} // namespace

void ax::addMovementPatterns(RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  patterns
      .add<DropIdentity<ReshapeOp>, DropIdentity<BroadcastOp>,
           DropIdentity<CastOp>, DropIdentity<SliceOp>, SkipInner<ReshapeOp>,
           SkipInner<BroadcastOp>, MoveSplat<ReshapeOp>, MoveSplat<BroadcastOp>,
           MoveSplat<TransposeOp>, MoveSplat<SliceOp>, MoveSplat<CastOp>,
           ReshapeConstant, DropIdentityTranspose, MergeTransposes,
           TransposeOfOnes, TransposeUnmerged, MergeSlices, DropTrivialConcat,
           DropEmptyPad, ConcatOfPads, MergeCasts>(context);
}
