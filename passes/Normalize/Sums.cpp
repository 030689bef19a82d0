//===- Sums.cpp - Sums of which a part is known ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a mean was taken from sums up to nothing: sum (x - mean x) = 0, also if
// each term has a factor that is the same along the sum. So the gradient of a
// batch norm's mean,
//
//   sum -(dy f + c (x - mean x)) = -f sum dy
//
// needs no sum of its own: that of dy is the gradient of its bias. As it was
// written, every element of the gradient had to be in memory for it, and each
// rank to wait for the others' sums once more.
//
// So it is of gradients alone, of which the centred terms are a part: where
// these are not finite, the gradient is not. Elsewhere the sum may be what a
// model is made for.
//
//===----------------------------------------------------------------------===//

#include "../Match.h"
#include "Patterns.h"

#include "ax/Dialect/Actions.h"

using namespace mlir;
using namespace ax;

namespace {

/// Whether all of the value along `dims` of a tensor of `rank` is the same.
bool isSameAlong(Value value, ArrayRef<int64_t> dims, int64_t rank) {
  ArrayRef<int64_t> shape = shapeOf(value);
  int64_t missing = rank - static_cast<int64_t>(shape.size());
  return llvm::all_of(dims, [&](int64_t dim) {
    return dim < missing || shape[dim - missing] == 1;
  });
}

/// x - mean x, over these dimensions.
bool isCentred(Value value, ArrayRef<int64_t> dims) {
  BinaryOp op = binaryOf(value, BinaryKind::sub);
  if (!op)
    return false;
  std::optional<Mean> mean = matchMean(op.getRhs());
  return mean && mean->operand == op.getLhs() && mean->dims == dims &&
         (mean->keepDims || dims.size() == shapeOf(op.getLhs()).size());
}

/// A sum over `dims` of terms, each with factors that are the same along it.
class Terms {
public:
  explicit Terms(ReduceOp sum)
      : shape(shapeOf(sum.getOperand())), dims(sum.getDims()) {
    add(sum.getOperand(), {}, false);
  }

  struct Term {
    Value value;
    SmallVector<Value> factors;
    bool isNegative;
  };
  /// Those that are not centred.
  ArrayRef<Term> getOthers() const { return others; }
  bool hasCentred() const { return centred; }

private:
  void add(Value value, SmallVector<Value> factors, bool isNegative) {
    constexpr size_t most = 8;
    if (UnaryOp negated = unaryOf(value, UnaryKind::neg))
      return add(negated.getOperand(), std::move(factors), !isNegative);
    if (isCentred(value, dims)) {
      centred = true;
      return;
    }
    auto op = value.getDefiningOp<BinaryOp>();
    bool isSum = op && (op.getKind() == BinaryKind::add ||
                        op.getKind() == BinaryKind::sub);
    if (isSum && isWhole(op.getLhs()) && isWhole(op.getRhs()) &&
        ++numSums <= most) {
      add(op.getLhs(), factors, isNegative);
      return add(op.getRhs(), std::move(factors),
                 isNegative != (op.getKind() == BinaryKind::sub));
    }
    if (op && op.getKind() == BinaryKind::mul)
      for (auto [whole, factor] :
           {std::pair(op.getLhs(), op.getRhs()), {op.getRhs(), op.getLhs()}})
        if (isWhole(whole) && isSameAlong(factor, dims, shape.size())) {
          factors.push_back(factor);
          return add(whole, std::move(factors), isNegative);
        }
    others.push_back({value, std::move(factors), isNegative});
  }
  bool isWhole(Value value) const { return shapeOf(value) == shape; }

  ArrayRef<int64_t> shape, dims;
  SmallVector<Term> others;
  size_t numSums = 0;
  bool centred = false;
};

/// The sum of `value` over the dimensions of `like`, which does not keep them:
/// one that is there, or a new one.
Value sumOf(PatternRewriter &rewriter, Value value, ReduceOp like) {
  for (Operation *user : value.getUsers()) {
    auto sum = dyn_cast<ReduceOp>(user);
    if (sum && sum.getKind() == ReduceOpKind::sum && !sum.getKeepDims() &&
        sum.getDims() == like.getDims() &&
        sum->getBlock() == like->getBlock() && sum->isBeforeInBlock(like))
      return sum;
  }
  SmallVector<int64_t> left;
  for (auto [dim, extent] : llvm::enumerate(shapeOf(value)))
    if (!llvm::is_contained(like.getDims(), static_cast<int64_t>(dim)))
      left.push_back(extent);
  return ReduceOp::create(rewriter, like.getLoc(),
                          RankedTensorType::get(left, elementType(value)),
                          ReduceOpKind::sum, value, like.getDims(),
                          /*keep_dims=*/false);
}

struct DropCentred : OpRewritePattern<ReduceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReduceOp sum,
                                PatternRewriter &rewriter) const final {
    if (sum.getKind() != ReduceOpKind::sum || sum.getDims().empty() ||
        markedAction(sum) != Action::Backward)
      return failure();
    Terms terms(sum);
    if (!terms.hasCentred() || terms.getOthers().size() != 1)
      return failure();
    Location loc = sum.getLoc();
    const Terms::Term &term = terms.getOthers().front();
    SmallVector<int64_t> kept(shapeOf(term.value));
    for (int64_t dim : sum.getDims())
      kept[dim] = 1;
    Value result =
        reshapeTo(rewriter, loc, sumOf(rewriter, term.value, sum), kept);
    for (Value factor : term.factors)
      result = BinaryOp::create(rewriter, loc, BinaryKind::mul, result, factor);
    if (term.isNegative)
      result = UnaryOp::create(rewriter, loc, UnaryKind::neg, result);
    rewriter.replaceOp(sum, reshapeTo(rewriter, loc, result, shapeOf(sum)));
    return success();
  }
};

} // namespace

void ax::addSumPatterns(RewritePatternSet &patterns) {
  patterns.add<DropCentred>(patterns.getContext());
}
