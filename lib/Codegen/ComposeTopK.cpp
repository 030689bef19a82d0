//===- ComposeTopK.cpp - The largest elements, of comparisons and sums ----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each element is compared with all of its row: the number of those that come
// before it is its place in order. No two have the same, as equal elements keep
// the order of their indices. So what is at a place does not depend on the
// order in which threads are done.
//
// The two largest of [3, 7, 7, 5]: places are [3, 0, 1, 2], so indices are
// [1, 2] and values [7, 7].
//
//===----------------------------------------------------------------------===//
#include "ForEachStage.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Gradients/TensorBuilder.h"

namespace ax::codegen {
#define GEN_PASS_DEF_COMPOSETOPK
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

namespace {

/// More comparisons than these take longer than a host that sorts.
constexpr int64_t mostComparisons = int64_t(1) << 32;

class TopKComposer {
public:
  explicit TopKComposer(TopKOp op)
      : op(op), builder(op), t(op.getLoc(), builder), dim(op.getDim()),
        shape(shapeOf(op.getOperand())), size(shape[dim]) {}

  /// Whether there is an element to choose, and comparing all of a row with
  /// each other pays.
  bool canCompose() {
    int64_t elements = llvm::product_of(shape);
    return op.getK() > 0 && elements > 0 &&
           !elementType(op.getOperand()).isInteger(1) &&
           size <= mostComparisons / elements;
  }

  void run() {
    Value indices = indicesOf(places());
    op.getIndices().replaceAllUsesWith(indices);
    op.getValues().replaceAllUsesWith(
        GatherElementsOp::create(t.b, op.getOperand(), indices, dim));
    op.erase();
  }

private:
  /// x with another dimension of one before `at`.
  Value unsqueeze(Value x, int64_t at) {
    SmallVector<int64_t> dims(shapeOf(x));
    dims.insert(dims.begin() + at, 1);
    return t.reshape(x, dims);
  }
  /// Numbers along `at`, one of the two dimensions that `dim` became.
  Value numbers(int64_t at, int64_t count) {
    return t.indexAlong(at, count, static_cast<int64_t>(shape.size()) + 1);
  }

  /// Whether x comes before y whatever their indices are. What is no number is
  /// larger than all numbers.
  Value isBefore(Value x, Value y) {
    if (op.getSmallest())
      std::swap(x, y);
    Value isLarger = t.compare(CompareKind::gt, x, y);
    if (!isa<FloatType>(elementType(x)))
      return isLarger;
    Value isNumber =
        t.unary(UnaryKind::logical_not, t.unary(UnaryKind::is_nan, y));
    Value isMore = t.binary(BinaryKind::logical_and,
                            t.unary(UnaryKind::is_nan, x), isNumber);
    return t.binary(BinaryKind::logical_or, isLarger, isMore);
  }

  /// How many elements of its row come before each element. All that is
  /// compared is as large as the pairs are: what is smaller would be a kernel's
  /// own result, in memory, and not done by who sums.
  Value places() {
    SmallVector<int64_t> pairs(shape);
    pairs.insert(pairs.begin() + dim, size);
    Value own = t.broadcast(unsqueeze(op.getOperand(), dim + 1), pairs);
    Value other = t.broadcast(unsqueeze(op.getOperand(), dim), pairs);
    Value isLower =
        t.compare(CompareKind::lt, t.broadcast(numbers(dim + 1, size), pairs),
                  t.broadcast(numbers(dim, size), pairs));
    Value isAfter = isBefore(own, other);
    Value comesFirst =
        t.select(isLower, t.unary(UnaryKind::logical_not, isAfter),
                 isBefore(other, own));
    return t.sum(t.indicator(comesFirst, t.b.getI64Type()), dim + 1,
                 /*keepDims=*/false);
  }

  /// Of each of the first k places the index of the element that has it.
  Value indicesOf(Value places) {
    Value isThere = t.compare(CompareKind::eq, unsqueeze(places, dim),
                              numbers(dim, op.getK()));
    Value found = t.select(isThere, numbers(dim + 1, size), 0.0);
    return t.sum(found, dim + 1, /*keepDims=*/false);
  }

  TopKOp op;
  OpBuilder builder;
  TensorBuilder t;
  int64_t dim;
  SmallVector<int64_t> shape;
  int64_t size;
};

struct ComposeTopKPass : codegen::impl::ComposeTopKBase<ComposeTopKPass> {
  void runOnOperation() override {
    forEachStage(getOperation(), [](LocalStageOp stage) {
      for (auto op :
           llvm::make_early_inc_range(stage.getBlock().getOps<TopKOp>()))
        if (TopKComposer composer(op); composer.canCompose())
          composer.run();
    });
  }
};

} // namespace
