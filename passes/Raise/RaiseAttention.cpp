//===- RaiseAttention.cpp - softmax(q k^T) v --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Passes/Passes.h"

#include "AttentionMask.h"
#include "AttentionMatch.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/STLExtras.h"

namespace ax {
#define GEN_PASS_DEF_RAISEATTENTION
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;

namespace {

struct Heads {
  int64_t batch = 1;
  int64_t heads = 1;
};

/// Takes scales and transposes off; returns the product of the scales.
double strip(RewriterBase &rewriter, AttentionOperand &side) {
  double scale = 1;
  while (true) {
    if (std::optional<WithNumber> scaled = matchScaled(side.value)) {
      scale *= scaled->number;
      side.value = scaled->value;
    } else if (auto op = side.value.getDefiningOp<TransposeOp>()) {
      ArrayRef<int64_t> permutation = op.getPermutation();
      for (int64_t &dim : side.leading)
        dim = permutation[dim];
      side.rows = permutation[side.rows];
      side.columns = permutation[side.columns];
      side.value = op.getOperand();
    } else {
      auto reshape = side.value.getDefiningOp<ReshapeOp>();
      std::optional<WithNumber> scaled =
          reshape ? matchScaled(reshape.getOperand()) : std::nullopt;
      if (!scaled)
        return scale;
      scale *= scaled->number;
      side.value = reshapeTo(rewriter, reshape.getLoc(), scaled->value,
                             shapeOf(reshape));
    }
  }
}

/// Batch and heads that a reshape has merged into the one leading dimension of
/// an operand: [b, h, ..] -> [b h, ..], or [b, h d] -> [b h, d].
std::optional<Heads> findMerged(const AttentionOperand &side) {
  auto reshape = side.value.getDefiningOp<ReshapeOp>();
  if (!reshape)
    return std::nullopt;
  ArrayRef<int64_t> from = shapeOf(reshape.getOperand()), to = shapeOf(reshape);
  std::optional<DimGroups> groups = matchDims(from, to);
  if (!groups)
    return std::nullopt;
  int64_t merged = side.leading[0], begin = 0, toBegin = 0;
  for (auto [end, toEnd] : *groups) {
    if (toBegin == merged && end - begin > 1 && from[begin] > 0 &&
        to[merged] % from[begin] == 0)
      return Heads{from[begin], to[merged] / from[begin]};
    begin = end;
    toBegin = toEnd;
  }
  return std::nullopt;
}

/// Batch and heads from the leading dimensions: two where the program has two
/// anywhere on the way, also before a reshape that merged them.
Heads findHeads(const AttentionMatch &match) {
  if (match.group) {
    ArrayRef<int64_t> shared =
        ArrayRef(match.scoresShape).take_front(match.k.leading.size());
    if (shared.size() < 2)
      return {ShapedType::getNumElements(shared), *match.group};
    return {ShapedType::getNumElements(shared.drop_back()),
            shared.back() * *match.group};
  }
  ArrayRef<int64_t> leading = ArrayRef(match.scoresShape).drop_back(2);
  if (leading.size() == 2)
    return {leading[0], leading[1]};
  for (ArrayRef<int64_t> shape : match.shapes)
    if (shape.size() == 4)
      return {shape[0], shape[1]};
  if (leading.size() == 1)
    for (const AttentionOperand *side : {&match.q, &match.k, &match.v})
      if (std::optional<Heads> heads = findMerged(*side))
        return *heads;
  if (leading.size() < 2)
    return {ShapedType::getNumElements(leading), 1};
  return {ShapedType::getNumElements(leading.drop_back()), leading.back()};
}

/// Takes the rows apart into positions and heads that share keys.
void splitRows(RewriterBase &rewriter, AttentionMatch &match) {
  AttentionOperand &q = match.q;
  SmallVector<int64_t> shape(shapeOf(q.value));
  int64_t rows = q.rows;
  shape[rows] = match.rowParts[0];
  shape.insert(shape.begin() + rows + 1, match.rowParts[1]);
  q.value = reshapeTo(rewriter, q.value.getLoc(), q.value, shape);
  for (int64_t &dim : q.leading)
    dim += dim > rows;
  q.columns += q.columns > rows;
  q.rows = rows + !match.groupIsMinor;
  q.leading.push_back(rows + match.groupIsMinor);
}

/// The operand as [batch, heads, rows, columns].
Value toFourDims(RewriterBase &rewriter, Location loc, AttentionOperand side,
                 Heads heads) {
  if (side.leading.size() == 1 && heads.heads > 1) {
    // Apart where they are, so that a reshape that merged them goes.
    int64_t merged = side.leading[0];
    SmallVector<int64_t> shape(shapeOf(side.value));
    shape[merged] = heads.heads;
    shape.insert(shape.begin() + merged, heads.batch);
    side.value = reshapeTo(rewriter, loc, side.value, shape);
    side.leading.push_back(merged + 1);
    side.rows += side.rows > merged;
    side.columns += side.columns > merged;
  }
  SmallVector<int64_t> permutation = side.leading;
  permutation.push_back(side.rows);
  permutation.push_back(side.columns);
  Value value = transposeTo(rewriter, loc, side.value, permutation);
  ArrayRef<int64_t> last = shapeOf(value).take_back(2);
  return reshapeTo(rewriter, loc, value,
                   {heads.batch, heads.heads, last[0], last[1]});
}

/// A key or value operand whose heads are repeated for groups of query heads:
/// reshape(broadcast([.., kv, 1, ..] -> [.., kv, group, ..])), or a broadcast
/// of one head to all. Gives the operand with each head once, already as
/// [batch, kv heads, rows, columns].
Value withoutRepeats(RewriterBase &rewriter, Location loc,
                     const AttentionOperand &side, Heads heads) {
  SmallVector<int64_t> permutation = side.leading;
  permutation.push_back(side.rows);
  permutation.push_back(side.columns);
  auto reshape = side.value.getDefiningOp<ReshapeOp>();
  Value repeated = reshape ? reshape.getOperand() : side.value;
  auto broadcast = repeated.getDefiningOp<BroadcastOp>();
  if (!broadcast)
    return {};

  // The shape in which one dimension is the heads, and which one.
  SmallVector<int64_t> shape(shapeOf(side.value));
  int64_t headDim;
  bool inOrder = isIdentity(permutation);
  if (inOrder) {
    shape = {heads.batch, heads.heads, shapeOf(side.value)[side.rows],
             shapeOf(side.value)[side.columns]};
    headDim = 1;
  } else if (side.leading.size() == 2) {
    headDim = side.leading[1];
  } else {
    return {};
  }

  ArrayRef<int64_t> full = shapeOf(broadcast);
  SmallVector<int64_t> source(shapeOf(broadcast.getOperand()));
  source.insert(source.begin(), full.size() - source.size(), 1);
  std::optional<DimGroups> groups = matchDims(full, shape);
  if (!groups)
    return {};
  // Only one dimension grows, and it is the last of those that make the heads.
  std::optional<int64_t> grown;
  for (int64_t dim = 0, rank = full.size(); dim < rank; ++dim) {
    if (source[dim] == full[dim])
      continue;
    if (grown || source[dim] != 1)
      return {};
    grown = dim;
  }
  if (!grown)
    return {};
  int64_t begin = 0, shapeBegin = 0;
  for (auto [end, shapeEnd] : *groups) {
    if (*grown >= begin && *grown < end) {
      // The other dimensions of the group are those of kv heads, in front.
      bool onlyHeads =
          shapeBegin <= headDim && shapeEnd > headDim &&
          ShapedType::getNumElements(ArrayRef(shape).slice(
              shapeBegin, shapeEnd - shapeBegin)) == shape[headDim];
      bool isLast = ShapedType::getNumElements(
                        full.slice(*grown + 1, end - *grown - 1)) == 1;
      if (!onlyHeads || !isLast)
        return {};
    }
    begin = end;
    shapeBegin = shapeEnd;
  }
  shape[headDim] /= full[*grown];
  Value value = reshapeTo(rewriter, loc, broadcast.getOperand(), shape);
  return inOrder ? value : transposeTo(rewriter, loc, value, permutation);
}

/// Replaces the product with v, when it is one. May leave unused operations.
void raiseProduct(DotOp op, KnownMasks &known, RewriterBase &rewriter) {
  std::optional<AttentionMatch> match = matchAttention(op);
  Type type = elementType(op);
  if (!match || elementType(match->q.value) != type ||
      elementType(match->k.value) != type ||
      elementType(match->v.value) != type)
    return;
  rewriter.setInsertionPoint(op);
  if (!match->rowParts.empty())
    splitRows(rewriter, *match);
  match->scale *= strip(rewriter, match->q);
  match->scale *= strip(rewriter, match->k);
  Heads heads = findHeads(*match);
  Location loc = op.getLoc();
  FailureOr<Value> mask =
      buildMask(rewriter, loc, *match, heads.batch, heads.heads, known);
  if (failed(mask))
    return;

  Value q = toFourDims(rewriter, loc, match->q, heads);
  if (match->rowScale) {
    Value scale =
        buildRowScale(rewriter, loc, *match, heads.batch, heads.heads, known);
    if (!scale || elementType(scale) != type)
      return;
    q = BinaryOp::create(rewriter, loc, BinaryKind::mul, q, scale);
  }
  Value k, v;
  if (!match->group) {
    k = withoutRepeats(rewriter, loc, match->k, heads);
    v = withoutRepeats(rewriter, loc, match->v, heads);
  }
  if (!k || !v || shapeOf(k)[1] != shapeOf(v)[1]) {
    Heads shared = {heads.batch, heads.heads / match->group.value_or(1)};
    k = toFourDims(rewriter, loc, match->k, shared);
    v = toFourDims(rewriter, loc, match->v, shared);
  }
  // In the wider type of scores and mask: a finite f32 mask is no f16.
  Type wide = elementType(q);
  if (Value added = *mask;
      added && isa<FloatType>(elementType(added)) &&
      elementType(added).getIntOrFloatBitWidth() > wide.getIntOrFloatBitWidth())
    wide = elementType(added);
  auto cast = [&](Value value, Type element) -> Value {
    if (!value || elementType(value) == element ||
        !isa<FloatType>(elementType(value)))
      return value;
    return CastOp::create(rewriter, loc, tensorType(value).clone(element),
                          value);
  };
  Location merged = rewriter.getFusedLoc(
      {loc, match->scores->getLoc(), match->softmax->getLoc()});
  Value result = cast(
      AttentionOp::create(
          rewriter, merged, cast(q, wide), cast(k, wide), cast(v, wide),
          cast(*mask, wide), rewriter.getF64FloatAttr(match->scale), UnitAttr(),
          /*window=*/IntegerAttr(),
          match->softcap ? rewriter.getF64FloatAttr(*match->softcap)
                         : FloatAttr(),
          match->emptyRowsZero ? rewriter.getUnitAttr() : UnitAttr(),
          /*empty_rows_mean=*/UnitAttr(),
          /*product_type=*/TypeAttr()),
      type);

  // Back to the leading dimensions of the probabilities, then to the order in
  // which the product has them.
  SmallVector<int64_t> shape;
  ArrayRef<int64_t> outShape = shapeOf(op);
  int64_t numLeading = match->resultOrder.size();
  shape.resize(numLeading);
  for (auto [i, dim] : llvm::enumerate(match->resultOrder))
    shape[dim] = outShape[i];
  SmallVector<int64_t> permutation = match->resultOrder;
  if (match->group) {
    shape.push_back(*match->group);
    permutation.push_back(numLeading++);
  }
  llvm::append_range(shape, shapeOf(result).take_back(2));
  result = reshapeTo(rewriter, loc, result, shape);
  permutation.push_back(numLeading);
  permutation.push_back(numLeading + 1);
  if (match->groupIsMinor)
    std::swap(permutation[numLeading - 1], permutation[numLeading]);
  result = transposeTo(rewriter, loc, result, permutation);
  rewriter.replaceOp(op, reshapeTo(rewriter, loc, result, outShape));
}

struct RaiseAttention : ax::impl::RaiseAttentionBase<RaiseAttention> {
  using RaiseAttentionBase::RaiseAttentionBase;

  void runOnOperation() final {
    SmallVector<DotOp> products;
    getOperation()->walk([&](DotOp op) { products.push_back(op); });
    IRRewriter rewriter(&getContext());
    KnownMasks known;
    // The product with v comes after that of q and k, which goes with it.
    for (DotOp op : llvm::reverse(products))
      raiseProduct(op, known, rewriter);

    RewritePatternSet patterns(&getContext());
    addAttentionMaskPatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    KnownMasks simplified;
    dropKnownMasks(getOperation(), simplified);
  }
};

} // namespace
