//===- AttentionMatch.cpp - softmax(q k^T) v in a program -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AttentionMatch.h"

#include "../KnownValue.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace mlir;
using namespace ax;

namespace {

/// A reshape that leaves the last two dimensions alone.
bool isLeadingReshape(ReshapeOp op) {
  ArrayRef<int64_t> from = shapeOf(op.getOperand()), to = shapeOf(op);
  return from.size() >= 2 && to.size() >= 2 &&
         from.take_back(2) == to.take_back(2);
}

bool isFloatCast(CastOp op) {
  return isa<FloatType>(elementType(op.getOperand())) &&
         isa<FloatType>(elementType(op));
}

/// Whether one shape is [.., rows, columns] and the other has the rows as two
/// dimensions, neither of which is 1.
bool takesRowsApart(Value merged, Value apart) {
  ArrayRef<int64_t> from = shapeOf(merged), to = shapeOf(apart);
  return from.size() >= 2 && to.size() == from.size() + 1 &&
         from.back() == to.back() && from.drop_back(2) == to.drop_back(3) &&
         !llvm::is_contained(to.drop_back().take_back(2), 1);
}

/// One side of a product with one contracted and one free dimension.
std::optional<AttentionOperand> matchSide(Value value, ArrayRef<int64_t> batch,
                                          ArrayRef<int64_t> contract,
                                          bool contractsRows) {
  int64_t rank = shapeOf(value).size();
  if (contract.size() != 1 || rank != static_cast<int64_t>(batch.size()) + 2)
    return std::nullopt;
  int64_t free = 0;
  while (free == contract[0] || llvm::is_contained(batch, free))
    ++free;
  AttentionOperand side{value, llvm::to_vector(batch), free, contract[0]};
  if (contractsRows)
    std::swap(side.rows, side.columns);
  return side;
}

/// Walks from the softmax's operand up to the product of q and k.
class ScoresWalk {
public:
  explicit ScoresWalk(AttentionMatch &match) : match(match) {}

  bool walk(Value value) {
    if (depth > 24)
      return false;
    ++depth;
    bool found = step(value);
    --depth;
    return found;
  }

private:
  bool step(Value value) {
    match.shapes.emplace_back(shapeOf(value));
    if (auto dot = value.getDefiningOp<DotOp>())
      return finish(dot);
    if (auto cast = value.getDefiningOp<CastOp>())
      return isFloatCast(cast) && walk(cast.getOperand());
    if (auto reshape = value.getDefiningOp<ReshapeOp>()) {
      if (takesRowsApart(reshape.getOperand(), reshape))
        return stepRows(reshape);
      return isLeadingReshape(reshape) && walk(reshape.getOperand());
    }
    if (auto transpose = value.getDefiningOp<TransposeOp>())
      return stepTranspose(transpose);
    if (std::optional<WithNumber> scaled = matchScaled(value)) {
      factor *= scaled->number;
      return walk(scaled->value);
    }
    if (UnaryOp tanh = unaryOf(value, UnaryKind::tanh))
      return cap(tanh);
    if (auto op = value.getDefiningOp<BinaryOp>())
      return stepBinary(op);
    if (auto select = value.getDefiningOp<SelectOp>())
      return stepSelect(select);
    return false;
  }

  bool finish(DotOp dot) {
    auto q = matchQueries(dot);
    auto k = matchSide(dot.getRhs(), dot.getRhsBatch(), dot.getRhsContract(),
                       /*contractsRows=*/false);
    if (!q || !k)
      return false;
    match.q = *q;
    match.k = *k;
    match.scores = dot;
    match.scoresShape = llvm::to_vector(shapeOf(dot));
    match.scale = factor * match.softcap.value_or(1);
    return true;
  }

  /// Matches as matchSide does. Beside the rows there may be a dimension that k
  /// lacks: heads that share a key.
  std::optional<AttentionOperand> matchQueries(DotOp dot) {
    ArrayRef<int64_t> batch = dot.getLhsBatch(),
                      contract = dot.getLhsContract();
    int64_t rank = shapeOf(dot.getLhs()).size();
    if (rank != static_cast<int64_t>(batch.size()) + 3)
      return swapsRows ? std::nullopt
                       : matchSide(dot.getLhs(), batch, contract,
                                   /*contractsRows=*/false);
    if (contract.size() != 1 || match.group)
      return std::nullopt;
    SmallVector<int64_t> free;
    for (int64_t dim = 0; dim < rank; ++dim)
      if (dim != contract[0] && !llvm::is_contained(batch, dim))
        free.push_back(dim);
    if (swapsRows)
      std::swap(free[0], free[1]);
    AttentionOperand side{dot.getLhs(), llvm::to_vector(batch), free[1],
                          contract[0]};
    side.leading.push_back(free[0]);
    match.group = shapeOf(dot.getLhs())[free[0]];
    return side;
  }

  /// [.., rows, group, T] -> [.., group, rows, T].
  bool stepTranspose(TransposeOp op) {
    int64_t rank = shapeOf(op).size();
    if (rank < 3 || swapsRows || match.group)
      return false;
    SmallVector<int64_t> swapped = llvm::to_vector(llvm::seq(rank));
    std::swap(swapped[rank - 3], swapped[rank - 2]);
    swapsRows = true;
    return op.getPermutation() == ArrayRef(swapped) && walk(op.getOperand());
  }

  /// [.., rows * group, T] -> [.., rows, group, T], or group * rows.
  bool stepRows(ReshapeOp op) {
    ArrayRef<int64_t> shape = shapeOf(op);
    bool sameShape = llvm::all_of(
        match.shapes, [&](ArrayRef<int64_t> other) { return other == shape; });
    if (!sameShape || swapsRows || match.group || match.rowScale)
      return false;
    match.rowParts = llvm::to_vector(shape.drop_back().take_back(2));
    // Masks tell positions from heads; keys are positions.
    bool majorVaries = false, minorVaries = false;
    for (const MaskStep &mask : match.masks)
      if (mask.tensor) {
        SmallVector<int64_t> own(shapeOf(mask.tensor));
        own.insert(own.begin(), shape.size() - own.size(), 1);
        majorVaries |= own[own.size() - 3] != 1;
        minorVaries |= own[own.size() - 2] != 1;
      }
    match.groupIsMinor = majorVaries != minorVaries
                             ? majorVaries
                             : match.rowParts[0] == shape.back();
    match.group = match.rowParts[match.groupIsMinor];
    return walk(op.getOperand());
  }

  /// Times a tensor that is the same along each row.
  bool stepScale(BinaryOp op) {
    for (auto [inner, scale] : {std::pair(op.getLhs(), op.getRhs()),
                                std::pair(op.getRhs(), op.getLhs())}) {
      ArrayRef<int64_t> shape = shapeOf(scale);
      if (shapeOf(inner) != shapeOf(op) ||
          (!shape.empty() && shape.back() != 1))
        continue;
      if (match.rowScale || swapsRows || match.group)
        return false;
      match.rowScale = scale;
      match.rowScaleShape = llvm::to_vector(shapeOf(op));
      match.rowScaleShape.back() = 1;
      return walk(inner);
    }
    return false;
  }

  bool cap(UnaryOp tanh) {
    if (match.softcap || factor <= 0 || match.rowScale)
      return false;
    match.softcap = factor;
    factor = 1;
    return walk(tanh.getOperand());
  }

  /// Below a mask that nothing may be masked: the cap is applied first.
  bool mask(MaskStep::Kind kind, Value inner, Value tensor, double number = 0,
            bool staysWhere = true) {
    if (match.softcap || match.rowScale || swapsRows || match.group)
      return false;
    size_t numMasks = match.masks.size(), numShapes = match.shapes.size();
    double outerFactor = factor;
    match.masks.push_back({kind, tensor, staysWhere, number,
                           llvm::to_vector(shapeOf(inner)), factor});
    if (walk(inner))
      return true;
    match.masks.truncate(numMasks);
    match.shapes.truncate(numShapes);
    match.softcap.reset();
    match.rowScale = {};
    match.group.reset();
    match.rowParts.clear();
    swapsRows = false;
    factor = outerFactor;
    return false;
  }

  /// x m + c, where m is known to be 1 and c 0, or m 0 and c one number.
  bool stepChosen(BinaryOp op) {
    double sign = op.getKind() == BinaryKind::sub ? -1 : 1;
    for (auto [product, other] : {std::pair(op.getLhs(), op.getRhs()),
                                  std::pair(op.getRhs(), op.getLhs())}) {
      BinaryOp mul = binaryOf(product, BinaryKind::mul);
      if (!mul || shapeOf(mul) != shapeOf(op))
        continue;
      for (auto [inner, chosen] : {std::pair(mul.getLhs(), mul.getRhs()),
                                   std::pair(mul.getRhs(), mul.getLhs())}) {
        if (shapeOf(inner) != shapeOf(op))
          continue;
        if (std::optional<double> fill = fillWhereZero(chosen, other))
          return mask(MaskStep::Select, inner, chosen, sign * *fill);
      }
      if (sign < 0)
        break;
    }
    return false;
  }

  /// The one number that `other` has where `chosen` is 0; elsewhere `chosen` is
  /// known to be 1 and `other` 0.
  static std::optional<double> fillWhereZero(Value chosen, Value other) {
    if (shapeOf(chosen) != shapeOf(other))
      return std::nullopt;
    std::optional<HostTensor> choice = knownValue(chosen);
    std::optional<HostTensor> addend =
        choice ? knownValue(other) : std::nullopt;
    if (!addend)
      return std::nullopt;
    std::optional<double> fill;
    for (int64_t i = 0, n = choice->numElements(); i < n; ++i) {
      double one = choice->getDouble(i), number = addend->getDouble(i);
      if (one == 1 ? number != 0 : one != 0 || (fill && number != *fill))
        return std::nullopt;
      if (one == 0)
        fill = number;
    }
    if (fill)
      for (Value decided : {chosen, other})
        noteDecided(decided);
    return fill;
  }

  bool stepBinary(BinaryOp op) {
    auto keepsShape = [&](Value inner) {
      return shapeOf(inner) == shapeOf(op);
    };
    Value lhs = op.getLhs(), rhs = op.getRhs();
    switch (op.getKind()) {
    case BinaryKind::mul:
      return stepScale(op);
    case BinaryKind::add:
      return stepChosen(op) ||
             (keepsShape(lhs) && mask(MaskStep::Add, lhs, rhs)) ||
             (keepsShape(rhs) && mask(MaskStep::Add, rhs, lhs));
    case BinaryKind::sub:
      return stepChosen(op) ||
             (keepsShape(lhs) && mask(MaskStep::Subtract, lhs, rhs));
    case BinaryKind::max:
      if (std::optional<double> bound = splatNumber(rhs))
        return keepsShape(lhs) &&
               mask(MaskStep::ClampBelow, lhs, Value(), *bound);
      return false;
    default:
      return false;
    }
  }

  bool stepSelect(SelectOp op) {
    for (bool staysWhere : {true, false}) {
      Value inner = staysWhere ? op.getOnTrue() : op.getOnFalse();
      Value other = staysWhere ? op.getOnFalse() : op.getOnTrue();
      std::optional<double> fill = splatNumber(other);
      if (fill && shapeOf(inner) == shapeOf(op) &&
          mask(MaskStep::Select, inner, op.getCondition(), *fill, staysWhere))
        return true;
    }
    return false;
  }

  AttentionMatch &match;
  double factor = 1;
  int depth = 0;
  /// Rows and group are the other way round in the product.
  bool swapsRows = false;
};

/// Whether `condition` is true exactly in rows of `scores` that are -inf as a
/// whole: what a safe softmax tests.
bool isEmptyRow(Value condition, Value scores) {
  if (UnaryOp negated = unaryOf(condition, UnaryKind::logical_not)) {
    // Not any element is not -inf.
    auto any = negated.getOperand().getDefiningOp<ReduceOp>();
    UnaryOp finite =
        any ? unaryOf(any.getOperand(), UnaryKind::logical_not) : UnaryOp();
    if (!finite || any.getKind() != ReduceOpKind::max)
      return false;
    auto compare = finite.getOperand().getDefiningOp<CompareOp>();
    return compare && compare.getKind() == CompareKind::eq &&
           compare.getLhs() == scores &&
           isExactSplat(compare.getRhs(), -INFINITY);
  }
  auto all = condition.getDefiningOp<ReduceOp>();
  auto compare =
      all ? all.getOperand().getDefiningOp<CompareOp>() : CompareOp();
  return compare && all.getKind() == ReduceOpKind::min &&
         compare.getKind() == CompareKind::eq && compare.getLhs() == scores &&
         isExactSplat(compare.getRhs(), -INFINITY);
}

/// Probabilities that a program sets to 0 where it has masked the scores.
struct Zeroed {
  Value condition;
  bool where = true;
};

/// Walks from the probabilities that multiply v up to the softmax. `rowParts`
/// are rows that have become one dimension on the way.
SoftmaxOp walkToSoftmax(Value value, bool &emptyRowsZero,
                        std::optional<Zeroed> &zeroed,
                        SmallVectorImpl<int64_t> &rowParts) {
  while (true) {
    if (auto reshape = value.getDefiningOp<ReshapeOp>();
        reshape && rowParts.empty() &&
        takesRowsApart(reshape, reshape.getOperand())) {
      value = reshape.getOperand();
      llvm::append_range(rowParts, shapeOf(value).drop_back().take_back(2));
    } else if (auto cast = value.getDefiningOp<CastOp>();
               cast && isFloatCast(cast)) {
      value = cast.getOperand();
    } else if (auto reshape = value.getDefiningOp<ReshapeOp>();
               reshape && isLeadingReshape(reshape)) {
      value = reshape.getOperand();
    } else if (auto select = value.getDefiningOp<SelectOp>()) {
      bool zeroWhere = isExactSplat(select.getOnTrue(), 0);
      if (!zeroWhere && !isExactSplat(select.getOnFalse(), 0))
        return {};
      value = zeroWhere ? select.getOnFalse() : select.getOnTrue();
      auto softmax = value.getDefiningOp<SoftmaxOp>();
      Value condition = select.getCondition();
      UnaryOp isNan = unaryOf(condition, UnaryKind::is_nan);
      if (zeroWhere &&
          ((isNan && isNan.getOperand() == value) ||
           (softmax && isEmptyRow(condition, softmax.getOperand()))))
        emptyRowsZero = true;
      else if (!zeroed)
        zeroed = Zeroed{condition, zeroWhere};
      else
        return {};
    } else {
      break;
    }
  }
  auto softmax = value.getDefiningOp<SoftmaxOp>();
  int64_t lastDim = static_cast<int64_t>(shapeOf(value).size()) - 1;
  bool fits = softmax && !softmax.getLog() &&
              static_cast<int64_t>(softmax.getDim()) == lastDim;
  return fits ? softmax : SoftmaxOp();
}

} // namespace

std::optional<AttentionMatch> ax::matchAttention(DotOp output) {
  AttentionMatch match;
  Value probabilities = output.getLhs();
  ArrayRef<int64_t> batch = output.getLhsBatch();
  int64_t numLeading = batch.size();
  int64_t last = static_cast<int64_t>(shapeOf(probabilities).size()) - 1;
  if (!isa<FloatType>(elementType(output)) || !probabilities.hasOneUse() ||
      output.getLhsContract() != ArrayRef<int64_t>{last} ||
      (last != numLeading + 1 && last != numLeading + 2) ||
      llvm::any_of(batch, [&](int64_t dim) { return dim >= numLeading; }))
    return std::nullopt;
  auto v = matchSide(output.getRhs(), output.getRhsBatch(),
                     output.getRhsContract(), /*contractsRows=*/true);
  std::optional<Zeroed> zeroed;
  SmallVector<int64_t> rowParts;
  SoftmaxOp softmax =
      walkToSoftmax(probabilities, match.emptyRowsZero, zeroed, rowParts);
  if (!v || !softmax)
    return std::nullopt;
  if (last == numLeading + 2 && rowParts.empty())
    llvm::append_range(rowParts,
                       shapeOf(probabilities).drop_back().take_back(2));
  match.resultOrder = llvm::to_vector(batch);
  match.v = *v;
  match.softmax = softmax;
  for (auto [i, dim] : llvm::enumerate(batch))
    match.v.leading[dim] = v->leading[i];

  if (!ScoresWalk(match).walk(softmax.getOperand()))
    return std::nullopt;
  if (rowParts.empty() != !match.group ||
      (match.group && rowParts[match.groupIsMinor] != *match.group))
    return std::nullopt;
  if (zeroed) {
    // The outermost mask, in full: nothing of a row is left where it masks all.
    if (match.masks.empty())
      return std::nullopt;
    MaskStep &mask = match.masks.front();
    if (mask.kind != MaskStep::Select || mask.tensor != zeroed->condition ||
        mask.staysWhere == zeroed->where || !(mask.number < -1e3))
      return std::nullopt;
    mask.number = -INFINITY;
    match.emptyRowsZero = true;
  }
  std::reverse(match.masks.begin(), match.masks.end());
  return match;
}
