//===- Lookup.cpp - Lookups with known indices ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../KnownValue.h"
#include "../Match.h"
#include "Patterns.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace ax;

namespace {

/// Indices that are known, negative ones counted from `extent`; nothing when
/// one is out of range.
std::optional<std::vector<int64_t>> knownIndices(Value indices,
                                                 int64_t extent) {
  std::optional<HostTensor> tensor = knownValue(indices);
  if (!tensor)
    return std::nullopt;
  std::vector<int64_t> result = tensor->toInts();
  for (int64_t &index : result) {
    if (index < 0)
      index += extent;
    if (index < 0 || index >= extent)
      return std::nullopt;
  }
  return result;
}

/// Indices a, a + step, a + 2 step, ... take a slice; indices all equal a
/// slice of one, broadcast.
struct GatherToSlice : OpRewritePattern<GatherOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(GatherOp op,
                                PatternRewriter &rewriter) const final {
    int64_t axis = op.getAxis();
    ArrayRef<int64_t> shape = shapeOf(op.getOperand());
    std::optional<std::vector<int64_t>> indices =
        knownIndices(op.getIndices(), shape[axis]);
    if (!indices || indices->empty())
      return failure();
    int64_t first = indices->front();
    int64_t step = indices->size() > 1 ? (*indices)[1] - first : 0;
    for (auto [i, index] : llvm::enumerate(*indices))
      if (index != first + static_cast<int64_t>(i) * step)
        return failure();
    noteDecided(op.getIndices());

    SmallVector<int64_t> starts(shape.size(), 0), steps(shape.size(), 1);
    SmallVector<int64_t> sizes(shape);
    starts[axis] = first;
    steps[axis] = step == 0 ? 1 : step;
    sizes[axis] = step == 0 ? 1 : static_cast<int64_t>(indices->size());
    Type element = elementType(op);
    Location loc = op.getLoc();
    Value result =
        SliceOp::create(rewriter, loc, RankedTensorType::get(sizes, element),
                        op.getOperand(), starts, steps);

    ArrayRef<int64_t> wanted = shapeOf(op);
    SmallVector<int64_t> unbroadcast(wanted);
    if (step == 0)
      for (int64_t i = 0, e = shapeOf(op.getIndices()).size(); i < e; ++i)
        unbroadcast[axis + i] = 1;
    result = reshapeTo(rewriter, loc, result, unbroadcast);
    if (result.getType() != op.getType())
      result = BroadcastOp::create(rewriter, loc, op.getType(), result);
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// Indices 0, 0, 1, 1, 2, 2: every slice repeated, as keys are for groups of
/// query heads.
struct GatherToRepeat : OpRewritePattern<GatherOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(GatherOp op,
                                PatternRewriter &rewriter) const final {
    int64_t axis = op.getAxis();
    SmallVector<int64_t> shape(shapeOf(op.getOperand()));
    auto indices = knownIndices(op.getIndices(), shape[axis]);
    if (!indices || shapeOf(op.getIndices()).size() != 1 || shape[axis] < 2 ||
        indices->size() % shape[axis] != 0)
      return failure();
    int64_t times = indices->size() / shape[axis];
    for (auto [i, index] : llvm::enumerate(*indices))
      if (times < 2 || index != static_cast<int64_t>(i) / times)
        return failure();
    noteDecided(op.getIndices());
    shape.insert(shape.begin() + axis + 1, 1);
    Value apart = reshapeTo(rewriter, op.getLoc(), op.getOperand(), shape);
    shape[axis + 1] = times;
    Value repeated = BroadcastOp::create(
        rewriter, op.getLoc(), RankedTensorType::get(shape, elementType(op)),
        apart);
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), repeated);
    return success();
  }
};

/// Indices that name every element in its place: what is left of
/// `mask[batch_index, position_index]`.
struct GatherNDIdentity : OpRewritePattern<GatherNDOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(GatherNDOp op,
                                PatternRewriter &rewriter) const final {
    ArrayRef<int64_t> shape = shapeOf(op.getOperand());
    if (op.getBatchDims() != 0 || shapeOf(op) != shape)
      return failure();
    int64_t depth = shapeOf(op.getIndices()).back();
    std::optional<HostTensor> indices = knownValue(op.getIndices());
    if (!indices || depth == 0)
      return failure();
    SmallVector<int64_t> expected(depth, 0);
    for (auto [i, index] : llvm::enumerate(indices->toInts())) {
      int64_t dim = static_cast<int64_t>(i) % depth;
      if (index < 0)
        index += shape[dim];
      if (index != expected[dim])
        return failure();
      if (dim != depth - 1)
        continue;
      for (int64_t digit = depth; digit-- > 0;) {
        if (++expected[digit] < shape[digit])
          break;
        expected[digit] = 0;
      }
    }
    noteDecided(op.getIndices());
    rewriter.replaceOp(op, op.getOperand());
    return success();
  }
};

/// One slice of each sample, or several: `states[batch_index, last]`, whose
/// first indices count samples. These become a dimension of a batch, so that
/// nothing is looked up in another's.
struct GatherNDOfSamples : OpRewritePattern<GatherNDOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(GatherNDOp op,
                                PatternRewriter &rewriter) const final {
    auto columns = op.getIndices().getDefiningOp<ConcatOp>();
    ArrayRef<int64_t> shape = shapeOf(op.getIndices());
    int64_t last = static_cast<int64_t>(shape.size()) - 1;
    if (op.getBatchDims() != 0 || last < 1 || !columns ||
        columns.getDim() != static_cast<uint64_t>(last) || shape[0] < 2 ||
        shape[0] != shapeOf(op.getOperand())[0])
      return failure();
    Value samples = columns.getOperands().front();
    if (shapeOf(samples)[last] != 1 || columns.getNumOperands() < 2)
      return failure();
    auto indices = knownIndices(samples, shape[0]);
    if (!indices)
      return failure();
    int64_t ofSample = static_cast<int64_t>(indices->size()) / shape[0];
    for (auto [i, index] : llvm::enumerate(*indices))
      if (index != static_cast<int64_t>(i) / ofSample)
        return failure();
    noteDecided(samples);
    SmallVector<Value> rest(llvm::drop_begin(columns.getOperands()));
    Value within =
        rest.size() == 1
            ? rest.front()
            : ConcatOp::create(rewriter, columns.getLoc(), rest, last)
                  .getResult();
    rewriter.replaceOpWithNewOp<GatherNDOp>(op, op.getType(), op.getOperand(),
                                            within, /*batch_dims=*/1);
    return success();
  }
};

} // namespace

void ax::addLookupPatterns(RewritePatternSet &patterns) {
  patterns
      .add<GatherToSlice, GatherToRepeat, GatherNDIdentity, GatherNDOfSamples>(
          patterns.getContext());
}
