//===- PadProducts.cpp - Rows that begin at multiples of 16 bytes ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Contraction.h"
#include "EightBitProducts.h"
#include "ForEachStage.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Dialect/ScaledFactor.h"
#include "ax/Gradients/TensorBuilder.h"

namespace ax::codegen {
#define GEN_PASS_DEF_PADPRODUCTS
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

/// Elements of 16 bits in 16 bytes.
static constexpr int64_t alignment = 8;
/// What is smaller is not worth a copy: sizes, and multiplications. Weights
/// that change are copied in each step.
static constexpr int64_t leastSize = 64, leastWork = int64_t(1) << 32;

namespace {

/// A factor: which dimensions are a batch's, or summed over, and how much is
/// added to each.
struct Factor {
  Value value;
  SmallVector<int64_t> batch, contract, extra;

  Factor(Value value, ArrayRef<int64_t> contract, ArrayRef<int64_t> batch = {})
      : value(value), batch(batch), contract(contract),
        extra(shapeOf(value).size(), 0) {}

  int64_t last() const { return static_cast<int64_t>(extra.size()) - 1; }
  SmallVector<int64_t> others() const {
    SmallVector<int64_t> dims;
    for (int64_t dim = 0; dim <= last(); ++dim)
      if (!llvm::is_contained(contract, dim) && !llvm::is_contained(batch, dim))
        dims.push_back(dim);
    return dims;
  }
  int64_t countOf(ArrayRef<int64_t> dims) const {
    int64_t count = 1;
    for (int64_t dim : dims)
      count *= shapeOf(value)[dim];
    return count;
  }
  int64_t paddedCountOf(ArrayRef<int64_t> dims) const {
    int64_t count = 1;
    for (int64_t dim : dims)
      count *= shapeOf(value)[dim] + extra[dim];
    return count;
  }
  void align(int64_t dim, int64_t multiple = alignment) {
    int64_t size = shapeOf(value)[dim];
    extra[dim] = static_cast<int64_t>(llvm::alignTo(size, multiple)) - size;
  }
  Value pad(TensorBuilder &t) const {
    SmallVector<int64_t> low(extra.size(), 0);
    return isPadded() ? t.pad(value, low, extra) : value;
  }
  bool isPadded() const {
    return llvm::any_of(extra, [](int64_t more) { return more != 0; });
  }
};

struct PadProductsPass : codegen::impl::PadProductsBase<PadProductsPass> {
  void runOnOperation() override {
    forEachStage(getOperation(), [](LocalStageOp stage) {
      for (Operation &op : llvm::make_early_inc_range(stage.getBlock())) {
        if (auto dot = dyn_cast<DotOp>(op)) {
          if (elementType(dot.getLhs()).isSignlessInteger(8))
            padIntegers(dot);
          else if (dot.getLhsBatch().empty())
            pad(&op, Factor(dot.getLhs(), dot.getLhsContract()),
                Factor(dot.getRhs(), dot.getRhsContract()));
        } else if (auto linear = dyn_cast<LinearOp>(op)) {
          Factor x(linear.getX(), {});
          x.contract = {x.last()};
          pad(&op, std::move(x),
              Factor(linear.getW(), {linear.getTransposeW() ? 1 : 0}));
        }
      }
    });
  }

  static void pad(Operation *op, Factor lhs, Factor rhs) {
    Type element = elementType(lhs.value);
    if (!element.isF16() && !element.isBF16())
      return;
    SmallVector<int64_t> rows = lhs.others(), columns = rhs.others();
    // As a float, which does not overflow.
    double work = 1;
    for (int64_t size :
         {lhs.countOf(rows), rhs.countOf(columns), lhs.countOf(lhs.contract)}) {
      if (size < leastSize)
        return;
      work *= static_cast<double>(size);
    }
    if (work < static_cast<double>(leastWork))
      return;
    alignLast(lhs, rhs);
    alignLast(rhs, lhs);
    rhs.align(columns.back());
    if (!lhs.isPadded() && !rhs.isPadded())
      return;
    // A dimension of 1 would become one of 8.
    constexpr double mostGrowth = 1.125;
    double padded = static_cast<double>(lhs.paddedCountOf(rows)) *
                    static_cast<double>(rhs.paddedCountOf(columns)) *
                    static_cast<double>(lhs.paddedCountOf(lhs.contract));
    if (padded > mostGrowth * work)
      return;

    replace(op, lhs, rhs);
  }

  /// cuBLASLt takes no other numbers of terms and columns; whether it takes
  /// fewer rows has not been tried on a card.
  static void padIntegers(DotOp dot) {
    if (!elementType(dot.getRhs()).isSignlessInteger(8) ||
        !mayMultiplyIntegers(dot))
      return;
    constexpr int64_t fewRows = 32;
    Factor lhs(dot.getLhs(), dot.getLhsContract(), dot.getLhsBatch()),
        rhs(dot.getRhs(), dot.getRhsContract(), dot.getRhsBatch());
    if (numTermsOf(dot) % eightBitMultiple != 0) {
      lhs.align(lhs.contract.back(), eightBitMultiple);
      rhs.align(rhs.contract.back(), eightBitMultiple);
    }
    rhs.align(rhs.others().back(), eightBitMultiple);
    int64_t last = lhs.others().back(), count = shapeOf(lhs.value)[last],
            beside = lhs.countOf(lhs.others()) / count;
    lhs.extra[last] =
        std::max<int64_t>(llvm::divideCeilSigned(fewRows, beside) - count, 0);
    if (lhs.isPadded() || rhs.isPadded())
      replace(dot, lhs, rhs);
  }

  /// By the product of what is padded, of which the result is a part.
  static void replace(Operation *op, const Factor &lhs, const Factor &rhs) {
    OpBuilder builder(op);
    TensorBuilder t(op->getLoc(), builder);
    Value result = op->getResult(0);
    Operation *product = builder.clone(*op);
    product->setOperands({lhs.pad(t), rhs.pad(t)});
    product->moveBefore(op);
    SmallVector<int64_t> shape(shapeOf(result)), zeros(shape.size(), 0),
        ones(shape.size(), 1);
    size_t at = lhs.batch.size();
    for (const Factor *factor : {&lhs, &rhs})
      for (int64_t dim : factor->others())
        shape[at++] += factor->extra[dim];
    product->getResult(0).setType(tensorType(result).clone(shape));
    Value part = product->getResult(0);
    if (part.getType() != result.getType())
      part = SliceOp::create(t.b, result.getType(), part, zeros, ones);
    result.replaceAllUsesWith(part);
    op->erase();
  }

  /// Along its last dimension a factor lies in memory.
  static void alignLast(Factor &factor, Factor &other) {
    int64_t last = factor.last();
    factor.align(last);
    const auto *place = llvm::find(factor.contract, last);
    if (place != factor.contract.end())
      other.align(other.contract[place - factor.contract.begin()]);
  }
};

} // namespace
