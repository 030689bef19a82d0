//===- Lookup.cpp - Lookups with known indices ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../KnownValue.h"
#include "../Match.h"
#include "Patterns.h"
#include "ax/Dialect/IndexRange.h"

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

/// Whether each element of [samples, ...] is its sample's number times `step`.
bool areSamples(Value numbers, int64_t samples, int64_t step) {
  auto known = knownIndices(numbers, samples * step);
  if (!known)
    return false;
  int64_t ofSample = static_cast<int64_t>(known->size()) / samples;
  for (auto [i, number] : llvm::enumerate(*known))
    if (number != static_cast<int64_t>(i) / ofSample * step)
      return false;
  return true;
}

/// One slice of each sample, or several: `states[batch_index, last]`, whose
/// first indices count samples. These become a dimension of a batch, so that
/// nothing is looked up in another's.
struct GatherNDOfSamples : OpRewritePattern<GatherNDOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(GatherNDOp op,
                                PatternRewriter &rewriter) const final {
    auto columns = op.getIndices().getDefiningOp<ConcatOp>();
    SmallVector<int64_t> shape(shapeOf(op.getIndices()));
    int64_t last = static_cast<int64_t>(shape.size()) - 1;
    if (shapeOf(op.getOperand()).empty())
      return failure();
    int64_t samples = shapeOf(op.getOperand())[0];
    if (op.getBatchDims() != 0 || last < 1 || !columns ||
        columns.getDim() != static_cast<uint64_t>(last) || samples < 2)
      return failure();
    // Several of each sample may be in one line.
    bool isLine = last == 1 && shape[0] > samples && shape[0] % samples == 0;
    Value numbers = columns.getOperands().front();
    if ((shape[0] != samples && !isLine) || shapeOf(numbers)[last] != 1 ||
        columns.getNumOperands() < 2 || !areSamples(numbers, samples, 1))
      return failure();
    noteDecided(numbers);
    SmallVector<Value> rest(llvm::drop_begin(columns.getOperands()));
    Value within =
        rest.size() == 1
            ? rest.front()
            : ConcatOp::create(rewriter, columns.getLoc(), rest, last)
                  .getResult();
    SmallVector<int64_t> result(shapeOf(op));
    if (isLine) {
      int64_t each = shape[0] / samples;
      within = reshapeTo(rewriter, op.getLoc(), within,
                         {samples, each, shapeOf(within).back()});
      result.front() = samples;
      result.insert(result.begin() + 1, each);
    }
    Value found = GatherNDOp::create(
        rewriter, op.getLoc(), RankedTensorType::get(result, elementType(op)),
        op.getOperand(), within,
        /*batch_dims=*/1);
    rewriter.replaceOp(op,
                       reshapeTo(rewriter, op.getLoc(), found, shapeOf(op)));
    return success();
  }
};

/// The same of samples one behind another, `states.flatten()[sample * length +
/// last]`, as TorchScript's exporter writes it; `last` is inside of its sample.
struct GatherOfSamples : OpRewritePattern<GatherOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(GatherOp op,
                                PatternRewriter &rewriter) const final {
    auto flat = op.getOperand().getDefiningOp<ReshapeOp>();
    SmallVector<int64_t> indices(shapeOf(op.getIndices()));
    if (!flat || op.getAxis() != 0 || indices.empty())
      return failure();
    ArrayRef<int64_t> shape = shapeOf(flat.getOperand());
    ArrayRef<int64_t> slices = shapeOf(flat);
    if (shape.size() != slices.size() + 1 || shape[0] < 2 || shape[1] < 1 ||
        shape[0] != indices[0] || shape.drop_front(2) != slices.drop_front())
      return failure();
    // What has fewer dimensions is broadcast along the first.
    auto sum = matchCommutative(op.getIndices(), BinaryKind::add, [&](Value v) {
      return shapeOf(v).size() == indices.size() && shapeOf(v)[0] == shape[0] &&
             areSamples(v, shape[0], shape[1]);
    });
    if (!sum || shapeOf(sum->second) != ArrayRef(indices))
      return failure();
    IndexRange range = findRange(sum->second);
    if (range.low < 0 || range.high >= shape[1])
      return failure();
    noteDecided(sum->first);
    indices.push_back(1);
    Value within = reshapeTo(rewriter, op.getLoc(), sum->second, indices);
    rewriter.replaceOpWithNewOp<GatherNDOp>(op, op.getType(), flat.getOperand(),
                                            within, /*batch_dims=*/1);
    return success();
  }
};

/// Where a column of such indices begins, [box.., 1], that counts dimension
/// `dim`: of what is broadcast to it, so that a box of two dimensions of S is
/// known by S numbers.
std::optional<int64_t> beginOfColumn(Value column, ArrayRef<int64_t> box,
                                     size_t dim) {
  if (std::optional<double> number = splatNumber(column);
      number && box[dim] == 1)
    return static_cast<int64_t>(*number);
  auto reshape = column.getDefiningOp<ReshapeOp>();
  auto broadcast = reshape && shapeOf(reshape.getOperand()) == box
                       ? reshape.getOperand().getDefiningOp<BroadcastOp>()
                       : BroadcastOp();
  std::optional<HostTensor> known =
      broadcast ? knownValue(broadcast.getOperand()) : std::nullopt;
  if (!known)
    return std::nullopt;
  ArrayRef<int64_t> shape = known->getShape();
  size_t missing = box.size() - shape.size();
  int64_t size = dim < missing ? 1 : shape[dim - missing], behind = 1;
  for (size_t d = std::max(dim + 1, missing); d < box.size(); ++d)
    behind *= shape[d - missing];
  std::vector<int64_t> all = known->toInts();
  if (size != box[dim])
    return std::nullopt;
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i] != all[0] + static_cast<int64_t>(i) / behind % size)
      return std::nullopt;
  return all[0];
}

/// Where indices that enumerate a box of the first dimensions, in order, put
/// it: its first element; nothing of other indices.
std::optional<std::vector<int64_t>> beginOfBox(Value indices,
                                               ArrayRef<int64_t> shape) {
  ArrayRef<int64_t> box = shapeOf(indices).drop_back();
  size_t depth = box.size();
  if (static_cast<int64_t>(depth) != shapeOf(indices).back() || depth == 0 ||
      llvm::is_contained(box, 0))
    return std::nullopt;
  if (auto columns = indices.getDefiningOp<ConcatOp>();
      columns && columns.getDim() == depth &&
      columns.getNumOperands() == depth) {
    std::vector<int64_t> begin;
    for (auto [d, column] : llvm::enumerate(columns.getOperands())) {
      std::optional<int64_t> first = shapeOf(column).back() == 1
                                         ? beginOfColumn(column, box, d)
                                         : std::nullopt;
      // Numbers from the end must not go on from the beginning.
      if (!first || *first < -shape[d] ||
          *first + box[d] > (*first < 0 ? 0 : shape[d]))
        break;
      begin.push_back(*first < 0 ? *first + shape[d] : *first);
    }
    if (begin.size() == depth)
      return begin;
  }
  std::optional<HostTensor> known = knownValue(indices);
  if (!known)
    return std::nullopt;
  std::vector<int64_t> all = known->toInts(), begin(depth);
  SmallVector<int64_t> place(depth, 0);
  for (size_t i = 0; i < all.size(); i += depth) {
    for (size_t d = 0; d < depth; ++d) {
      int64_t index = all[i + d] < 0 ? all[i + d] + shape[d] : all[i + d];
      if (i == 0)
        begin[d] = index;
      if (index != begin[d] + place[d] || index < 0 || index >= shape[d])
        return std::nullopt;
    }
    for (size_t d = depth; d-- > 0;) {
      if (++place[d] < box[d])
        break;
      place[d] = 0;
    }
  }
  return begin;
}

/// What is written into a slice, `y[:, 2:5] = x`, as TorchScript's exporter
/// writes it: the slices around it stay, each dimension for itself, so that
/// samples of a batch do not meet.
struct ScatterNDToSlices : OpRewritePattern<ScatterNDOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ScatterNDOp op,
                                PatternRewriter &rewriter) const final {
    ArrayRef<int64_t> shape = shapeOf(op.getOperand());
    if (op.getKind() != ScatterKind::set)
      return failure();
    auto begin = beginOfBox(op.getIndices(), shape);
    if (!begin)
      return failure();
    noteDecided(op.getIndices());
    // The box, of which more and more dimensions, the last ones first, are as
    // long as the result's; what is around it in these is there, too.
    Value result = op.getUpdates();
    SmallVector<int64_t> starts(shape.size(), 0), steps(shape.size(), 1);
    llvm::copy(*begin, starts.begin());
    for (int64_t dim = begin->size(); dim-- > 0;) {
      SmallVector<int64_t> sizes(shapeOf(result));
      int64_t end = starts[dim] + sizes[dim];
      auto slice = [&](int64_t from, int64_t to) {
        SmallVector<int64_t> at(starts);
        at[dim] = from;
        sizes[dim] = to - from;
        return SliceOp::create(rewriter, op.getLoc(),
                               RankedTensorType::get(sizes, elementType(op)),
                               op.getOperand(), at, steps);
      };
      SmallVector<Value> parts;
      if (starts[dim] > 0)
        parts.push_back(slice(0, starts[dim]));
      parts.push_back(result);
      if (end < shape[dim])
        parts.push_back(slice(end, shape[dim]));
      if (parts.size() > 1)
        result = ConcatOp::create(rewriter, op.getLoc(), parts, dim);
      starts[dim] = 0;
    }
    rewriter.replaceOp(op, result);
    return success();
  }
};

} // namespace

void ax::addLookupPatterns(RewritePatternSet &patterns) {
  patterns.add<GatherToSlice, GatherToRepeat, GatherNDIdentity,
               GatherNDOfSamples, GatherOfSamples, ScatterNDToSlices>(
      patterns.getContext());
}
