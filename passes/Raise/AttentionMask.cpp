//===- AttentionMask.cpp - Masks of attention -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AttentionMask.h"
#include "BandMask.h"

#include "../KnownValue.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace mlir;
using namespace ax;

bool ax::swallowsScores(double number, Type type) {
  auto floatType = cast<FloatType>(type);
  double digits = floatType.getFPMantissaWidth();
  return number <= -std::ldexp(16.0, static_cast<int>(digits));
}

std::optional<bool> ax::isAttendable(double element, Type type, bool kept) {
  if (type.isInteger(1))
    return (element != 0) == kept;
  if (element != 0 && !swallowsScores(element, type))
    return std::nullopt;
  return element == 0;
}

namespace {

/// The mask so far: scores that stay, or an addend, or nothing.
class MaskBuilder {
public:
  MaskBuilder(RewriterBase &rewriter, Location loc, const AttentionMatch &match,
              int64_t batch, int64_t heads, KnownMasks &known)
      : rewriter(rewriter), loc(loc), match(match), heads{batch, heads},
        known(known) {}

  LogicalResult take(const MaskStep &step) {
    switch (step.kind) {
    case MaskStep::Add:
    case MaskStep::Subtract:
      return takeAddend(step);
    case MaskStep::Select:
      return takeSelect(step);
    case MaskStep::ClampBelow:
      return takeClamp(step);
    }
    return failure();
  }

  Value result() const { return keep ? keep : addend; }

  /// `tensor`, which broadcasts to scores of `scoresShape`, for scores of
  /// [batch, heads, S, T]; null when the leading dimensions do not correspond.
  Value toFourDims(Value tensor, ArrayRef<int64_t> scoresShape) {
    SmallVector<int64_t> own(shapeOf(tensor)), shape(scoresShape);
    if (own.size() > shape.size())
      return {};
    own.insert(own.begin(), shape.size() - own.size(), 1);
    tensor = reshapeTo(rewriter, loc, tensor, own);
    if (match.groupIsMinor) {
      SmallVector<int64_t> permutation = llvm::to_vector(
          llvm::seq<int64_t>(static_cast<int64_t>(shape.size())));
      size_t rows = shape.size() - 3;
      for (auto *list : {&permutation, &own, &shape})
        std::swap((*list)[rows], (*list)[rows + 1]);
      tensor = transposeTo(rewriter, loc, tensor, permutation);
    }
    ArrayRef<int64_t> leading = ArrayRef(shape).drop_back(2);
    std::optional<DimGroups> groups = matchDims(leading, heads);
    if (!groups)
      return {};
    SmallVector<int64_t> full(own), result;
    int64_t begin = 0, next = 0;
    for (auto [end, headsEnd] : *groups) {
      bool varies = false;
      for (int64_t dim = begin; dim < end; ++dim)
        varies |= own[dim] != 1;
      for (int64_t dim = begin; dim < end && varies; ++dim)
        full[dim] = leading[dim];
      for (; next < headsEnd; ++next)
        result.push_back(varies ? heads[next] : 1);
      begin = end;
    }
    result.append(own.end() - 2, own.end());
    if (own != full)
      tensor = BroadcastOp::create(
          rewriter, loc, RankedTensorType::get(full, elementType(tensor)),
          tensor);
    return reshapeTo(rewriter, loc, tensor, result);
  }

private:
  LogicalResult takeAddend(const MaskStep &step) {
    Value tensor = toFourDims(step.tensor, step.shape);
    if (!tensor)
      return failure();
    if (step.kind == MaskStep::Subtract)
      tensor = UnaryOp::create(rewriter, loc, UnaryKind::neg, tensor);
    if (step.factor != 1)
      tensor = BinaryOp::create(rewriter, loc, BinaryKind::mul, tensor,
                                scalar(elementType(tensor), step.factor));
    if (keep)
      toAddend(elementType(tensor));
    if (!addend) {
      addend = tensor;
      return success();
    }
    if (elementType(addend) != elementType(tensor))
      return failure();
    addend = BinaryOp::create(rewriter, loc, BinaryKind::add, addend, tensor);
    return success();
  }

  LogicalResult takeSelect(const MaskStep &step) {
    Value condition = step.tensor;
    if (!elementType(condition).isInteger(1))
      condition = CastOp::create(
          rewriter, loc,
          RankedTensorType::get(shapeOf(condition), rewriter.getI1Type()),
          condition);
    Value stays = toFourDims(condition, step.shape);
    if (!stays || step.factor <= 0)
      return failure();
    if (!step.staysWhere)
      stays = UnaryOp::create(rewriter, loc, UnaryKind::logical_not, stays);
    double fill = step.number * step.factor;
    Type type = elementType(match.q.value);
    bool alone = match.masks.size() == 1;
    if (fill == -INFINITY ||
        (alone && swallowsScores(fill, type) &&
         known.keepsEveryRow(condition, step.staysWhere))) {
      if (addend)
        addend = SelectOp::create(rewriter, loc, stays, addend,
                                  scalar(elementType(addend), -INFINITY));
      else
        keep = keep ? Value(BinaryOp::create(
                          rewriter, loc, BinaryKind::logical_and, keep, stays))
                    : stays;
      return success();
    }
    if (!swallowsScores(fill, type))
      return failure();
    if (keep)
      toAddend(type);
    Value inside = addend ? addend : scalar(type, 0);
    addend = SelectOp::create(rewriter, loc, stays, inside,
                              scalar(elementType(inside), fill));
    return success();
  }

  LogicalResult takeClamp(const MaskStep &step) {
    double bound = step.number * step.factor;
    if (step.factor <= 0 || !swallowsScores(bound, elementType(match.q.value)))
      return failure();
    if (keep)
      toAddend(elementType(match.q.value));
    if (addend)
      addend = BinaryOp::create(rewriter, loc, BinaryKind::max, addend,
                                scalar(elementType(addend), bound));
    return success();
  }

  Value scalar(Type type, double number) {
    return createSplat(rewriter, loc, RankedTensorType::get({}, type), number);
  }

  void toAddend(Type type) {
    addend = SelectOp::create(rewriter, loc, keep, scalar(type, 0),
                              scalar(type, -INFINITY));
    keep = {};
  }

  RewriterBase &rewriter;
  Location loc;
  const AttentionMatch &match;
  SmallVector<int64_t> heads;
  KnownMasks &known;
  Value keep, addend;
};

//===----------------------------------------------------------------------===//
// Known masks
//===----------------------------------------------------------------------===//

/// A mask as what may be attended to, when every element says yes or no and
/// every row has a yes.
std::optional<std::vector<bool>> attendable(const HostTensor &mask, Type type,
                                            bool kept = true) {
  std::vector<bool> result;
  int64_t width = mask.getShape().back();
  for (int64_t row = 0, n = mask.numElements(); row < n; row += width) {
    bool any = false;
    for (int64_t i = row; i < row + width; ++i) {
      std::optional<bool> yes = isAttendable(mask.getDouble(i), type, kept);
      if (!yes)
        return std::nullopt;
      result.push_back(*yes);
      any |= *yes;
    }
    if (!any)
      return std::nullopt;
  }
  return result;
}

/// select(c, 0, -inf) added is c itself.
struct MaskOfChoice : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const final {
    Value mask = op.getMask();
    if (!mask)
      return failure();
    if (auto reshape = mask.getDefiningOp<ReshapeOp>())
      mask = reshape.getOperand();
    auto select = mask.getDefiningOp<SelectOp>();
    if (!select || shapeOf(select.getCondition()) != shapeOf(select))
      return failure();
    Location loc = op.getLoc();
    Value keep = select.getCondition();
    Value yes = select.getOnTrue(), no = select.getOnFalse();
    bool isSwapped = isExactSplat(yes, -INFINITY);
    if (isSwapped)
      std::swap(yes, no);
    if (!isExactSplat(yes, 0) || !isExactSplat(no, -INFINITY))
      return failure();
    if (isSwapped)
      keep = UnaryOp::create(rewriter, loc, UnaryKind::logical_not, keep);
    keep = reshapeTo(rewriter, loc, keep, shapeOf(op.getMask()));
    rewriter.modifyOpInPlace(op, [&] { op.getMaskMutable().assign(keep); });
    return success();
  }
};

/// Attention broadcasts its mask by itself.
struct SkipBroadcast : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const final {
    auto broadcast = op.getMask() ? op.getMask().getDefiningOp<BroadcastOp>()
                                  : BroadcastOp();
    if (!broadcast)
      return failure();
    SmallVector<int64_t> shape(shapeOf(broadcast.getOperand()));
    shape.insert(shape.begin(), 4 - shape.size(), 1);
    Value mask =
        reshapeTo(rewriter, op.getLoc(), broadcast.getOperand(), shape);
    rewriter.modifyOpInPlace(op, [&] { op.getMaskMutable().assign(mask); });
    return success();
  }
};

} // namespace

bool KnownMasks::regionKeepsEveryRow(Value condition, bool kept) {
  std::optional<MaskRegion> region = regions.find(condition);
  if (!region)
    return false;
  auto isKept = [&](double number) { return (number != 0) == kept; };
  if (region->isUniform())
    return isKept(region->last());
  ArrayRef<int64_t> shape = shapeOf(condition);
  int64_t rows = shape[shape.size() - 2], columns = shape.back();
  // A row has what bands have from its first column on to its last one.
  for (int64_t row = 0; row < rows; ++row) {
    int64_t first = -row, last = columns - 1 - row;
    bool any = isKept(region->at(last));
    for (int64_t end : region->ends)
      any |= first <= end && end <= last && isKept(region->at(end));
    if (!any)
      return false;
  }
  return true;
}

KnownMasks::Kind KnownMasks::kindOfRegion(Value mask, int64_t queries,
                                          int64_t keys) {
  std::optional<MaskRegion> region = regions.find(mask);
  if (!region)
    return Unknown;
  std::optional<Bands<bool>> seen =
      mapBands<bool>(ArrayRef(*region), [&](ArrayRef<double> number) {
        return isAttendable(number[0], elementType(mask));
      });
  if (!seen)
    return Unknown;
  if (seen->isUniform())
    return seen->last() ? Nothing : Unknown;
  bool isCausal = seen->ends.size() == 1 && seen->parts[0] &&
                  seen->ends[0] == keys - queries && keys >= queries;
  return isCausal && shapeOf(mask)[2] == queries && shapeOf(mask)[3] == keys
             ? Causal
             : Unknown;
}

bool KnownMasks::keepsEveryRow(Value condition, bool kept) {
  auto [entry, isNew] = everyRow.try_emplace({condition, kept}, false);
  if (!isNew)
    return entry->second;
  std::optional<HostTensor> tensor = knownValue(condition);
  if (tensor)
    entry->second =
        tensor->getRank() > 0 &&
        attendable(*tensor, elementType(condition), kept).has_value();
  else
    entry->second = regionKeepsEveryRow(condition, kept);
  if (entry->second)
    noteDecided(condition);
  return entry->second;
}

KnownMasks::Kind KnownMasks::getKind(Value mask, int64_t queries,
                                     int64_t keys) {
  auto [entry, isNew] = kinds.try_emplace(mask, Unknown);
  if (!isNew)
    return entry->second;
  std::optional<HostTensor> tensor = knownValue(mask);
  if (!tensor)
    return entry->second = kindOfRegion(mask, queries, keys);
  std::optional<std::vector<bool>> allowed =
      attendable(*tensor, elementType(mask));
  if (!allowed)
    return Unknown;
  if (llvm::all_of(*allowed, [](bool yes) { return yes; }))
    return entry->second = Nothing;
  if (tensor->getShape()[2] != queries || tensor->getShape()[3] != keys)
    return Unknown;
  for (size_t i = 0; i < allowed->size(); ++i) {
    int64_t query = static_cast<int64_t>(i) / keys % queries;
    int64_t key = static_cast<int64_t>(i) % keys;
    if ((*allowed)[i] != (key <= query + keys - queries))
      return Unknown;
  }
  return entry->second = Causal;
}

/// Whether some query sees no key with before < t - i <= last.
static bool someSeeNothing(const BandMask &band, int64_t queries,
                           int64_t keys) {
  return *band.last < 0 || (band.before && *band.before + queries >= keys);
}

/// Of a mask that hides what is further from a query's place than some, and
/// keys, the latter are left.
static void splitMask(AttentionOp op, BandMasks &masks) {
  int64_t queries = shapeOf(op.getQ())[2], keys = shapeOf(op.getK())[2];
  Value mask = op.getMask();
  if (shapeOf(mask)[2] != queries || shapeOf(mask)[3] != keys)
    return;
  std::optional<BandMask> band = masks.find(mask);
  // Beside causality that hides with infinity no other number hides the same.
  if (!band || (op.getCausal() && band->isMeanWhereEmpty))
    return;
  int64_t ownPlace = keys - queries;
  if (op.getCausal())
    band->last = std::min(band->last.value_or(ownPlace), ownPlace);
  if (!band->last || (band->before && *band->before >= *band->last))
    return;
  bool isCausal = *band->last == ownPlace;
  bool mayBeEmpty = band->ofKeys || someSeeNothing(*band, queries, keys);
  OpBuilder builder(op);
  auto place = [&](int64_t number) {
    return createSplat(
        builder, op.getLoc(),
        RankedTensorType::get({1, 1, 1, 1}, builder.getI64Type()),
        static_cast<double>(number));
  };
  Value left = band->ofKeys;
  if (!isCausal && left && !elementType(left).isInteger(1))
    return;
  if (!isCausal)
    left = left ? SelectOp::create(builder, op.getLoc(), left,
                                   place(*band->last), place(-keys - queries))
                : place(*band->last);
  op.getMaskMutable().clear();
  if (left)
    op.getMaskMutable().assign(left);
  op.setCausal(isCausal);
  if (band->before)
    op.setWindow(*band->last - *band->before);
  if (band->isMeanWhereEmpty && mayBeEmpty) {
    op.setEmptyRowsZero(false);
    op.setEmptyRowsMean(true);
  }
}

void ax::dropKnownMasks(Operation *root, KnownMasks &known) {
  BandMasks bands;
  root->walk([&](AttentionOp op) {
    if (!op.getMask())
      return;
    KnownMasks::Kind kind = known.getKind(op.getMask(), shapeOf(op.getQ())[2],
                                          shapeOf(op.getK())[2]);
    if (kind == KnownMasks::Unknown) {
      splitMask(op, bands);
      return;
    }
    noteDecided(op.getMask());
    op.getMaskMutable().clear();
    if (kind == KnownMasks::Causal)
      op.setCausal(true);
  });
}

Value ax::buildRowScale(RewriterBase &rewriter, Location loc,
                        const AttentionMatch &match, int64_t batch,
                        int64_t heads, KnownMasks &known) {
  return MaskBuilder(rewriter, loc, match, batch, heads, known)
      .toFourDims(match.rowScale, match.rowScaleShape);
}

FailureOr<Value> ax::buildMask(RewriterBase &rewriter, Location loc,
                               const AttentionMatch &match, int64_t batch,
                               int64_t heads, KnownMasks &known) {
  MaskBuilder builder(rewriter, loc, match, batch, heads, known);
  for (const MaskStep &step : match.masks)
    if (failed(builder.take(step)))
      return failure();
  Value mask = builder.result();
  if (!mask)
    return Value();
  SmallVector<int64_t> shape(shapeOf(mask));
  shape.insert(shape.begin(), 4 - shape.size(), 1);
  return reshapeTo(rewriter, loc, mask, shape);
}

void ax::addAttentionMaskPatterns(RewritePatternSet &patterns) {
  patterns.add<MaskOfChoice, SkipBroadcast>(patterns.getContext());
}
