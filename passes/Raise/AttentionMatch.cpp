//===- AttentionMatch.cpp - softmax(q k^T) v in a program -------*- C++ -*-===//

#include "AttentionMatch.h"

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

/// From the softmax's operand up to the product of q and k.
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
    if (auto reshape = value.getDefiningOp<ReshapeOp>())
      return isLeadingReshape(reshape) && walk(reshape.getOperand());
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
    auto q = matchSide(dot.getLhs(), dot.getLhsBatch(), dot.getLhsContract(),
                       /*contractsRows=*/false);
    auto k = matchSide(dot.getRhs(), dot.getRhsBatch(), dot.getRhsContract(),
                       /*contractsRows=*/false);
    if (!q || !k)
      return false;
    match.q = *q;
    match.k = *k;
    match.scoresShape = llvm::to_vector(shapeOf(dot));
    match.scale = factor * match.softcap.value_or(1);
    return true;
  }

  bool cap(UnaryOp tanh) {
    if (match.softcap || factor <= 0)
      return false;
    match.softcap = factor;
    factor = 1;
    return walk(tanh.getOperand());
  }

  /// Below a mask that nothing may be masked: the cap is applied first.
  bool mask(MaskStep::Kind kind, Value inner, Value tensor, double number = 0,
            bool staysWhere = true) {
    if (match.softcap)
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
    factor = outerFactor;
    return false;
  }

  bool stepBinary(BinaryOp op) {
    auto keepsShape = [&](Value inner) {
      return shapeOf(inner) == shapeOf(op);
    };
    Value lhs = op.getLhs(), rhs = op.getRhs();
    switch (op.getKind()) {
    case BinaryKind::add:
      return (keepsShape(lhs) && mask(MaskStep::Add, lhs, rhs)) ||
             (keepsShape(rhs) && mask(MaskStep::Add, rhs, lhs));
    case BinaryKind::sub:
      return keepsShape(lhs) && mask(MaskStep::Subtract, lhs, rhs);
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

/// From the probabilities that multiply v up to the softmax.
SoftmaxOp walkToSoftmax(Value value, bool &emptyRowsZero,
                        std::optional<Zeroed> &zeroed) {
  while (true) {
    if (auto cast = value.getDefiningOp<CastOp>(); cast && isFloatCast(cast)) {
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
  if (!isa<FloatType>(elementType(output)) || !probabilities.hasOneUse() ||
      static_cast<int64_t>(shapeOf(probabilities).size()) != numLeading + 2 ||
      output.getLhsContract() != ArrayRef<int64_t>{numLeading + 1} ||
      llvm::is_contained(batch, numLeading))
    return std::nullopt;
  auto v = matchSide(output.getRhs(), output.getRhsBatch(),
                     output.getRhsContract(), /*contractsRows=*/true);
  std::optional<Zeroed> zeroed;
  SoftmaxOp softmax = walkToSoftmax(probabilities, match.emptyRowsZero, zeroed);
  if (!v || !softmax)
    return std::nullopt;
  match.resultOrder = llvm::to_vector(batch);
  match.v = *v;
  for (auto [i, dim] : llvm::enumerate(batch))
    match.v.leading[dim] = v->leading[i];

  if (!ScoresWalk(match).walk(softmax.getOperand()))
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
