//===- ComposeProducts.cpp - Weights that are made where they are read ----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Example: a Linear of 4096 x 4096 weights of four bits, two in a byte. What it
// multiplies with is (byte >> {0, 4} & 15 - zero point) * scale, 64 MiB of f32
// of 8 MiB of bytes. Of one row x the result is the sum of x times that, one
// kernel, which reads no more than the bytes. Of several rows, the library does
// products of 128 rows of the weight after another, and what these are made
// into is still in a cache when it reads them.
//
//===----------------------------------------------------------------------===//
#include "ForEachStage.h"
#include "LookUps.h"
#include "MergeEqual.h"
#include "Products.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Cost/OpCost.h"
#include "ax/Dialect/ScaledFactor.h"
#include "ax/Gradients/TensorBuilder.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

namespace ax::codegen {
#define GEN_PASS_DEF_COMPOSEPRODUCTS
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

static int64_t bytesOf(Value value) {
  return tensorType(value).getNumElements() *
         cost::elementBytes(elementType(value));
}

/// Whether `weight` is better made where it is read, by the rule of what a plan
/// prepares: both leave the same to each other.
static bool isOfFewerBytes(Value weight) {
  constexpr size_t mostValues = 64;
  llvm::SmallSetVector<Value, 16> values;
  values.insert(weight);
  int64_t bytes = 0;
  for (size_t i = 0; i != values.size(); ++i) {
    Operation *op = values[i].getDefiningOp();
    if (isMadeInPassing(op))
      values.insert(op->operand_begin(), op->operand_end());
    else
      bytes += bytesOf(values[i]);
    if (values.size() > mostValues)
      return false;
  }
  return cost::isMadeOfFewer(bytesOf(weight), bytes);
}

namespace {

/// Makes some of a weight's rows, of what these are made of.
class RowMaker {
public:
  /// `number`: of the product, which has its rows for itself.
  RowMaker(TensorBuilder &t, int64_t number, int64_t rows, int64_t start,
           int64_t count)
      : t(t), number(number), rows(rows), start(start), count(count) {}

  /// The part of a value that stands for these rows: its first dimension is
  /// that of the rows, or each has several of it, or several have one. Null
  /// where it is not.
  Value make(Value whole) {
    if (Value made = parts.lookup(whole))
      return made;
    Value part = makePart(whole);
    parts[whole] = part;
    return part;
  }

private:
  struct Range {
    int64_t start, count;
  };
  /// Of the first dimension.
  std::optional<Range> rangeIn(Value value) const {
    ArrayRef<int64_t> shape = shapeOf(value);
    int64_t size = shape.empty() ? 0 : shape.front();
    if (size == 0 || start * size % rows != 0 || count * size % rows != 0)
      return std::nullopt;
    return Range{start * size / rows, count * size / rows};
  }

  Value slice(Value whole, const Range &range) {
    Value part = t.slice(whole, 0, range.start, range.count);
    part.getDefiningOp()->setAttr(kApart, t.b.getI64IntegerAttr(number));
    return part;
  }

  Value makePart(Value whole) {
    Operation *op = whole.getDefiningOp();
    std::optional<Range> range = rangeIn(whole);
    if (!range)
      return {};
    if (!isMadeInPassing(op))
      return slice(whole, *range);
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      operands.push_back(partOfOperand(op, operand));
      if (!operands.back())
        return {};
    }
    Operation *made = t.b.clone(*op);
    made->setOperands(operands);
    SmallVector<int64_t> shape(shapeOf(whole));
    shape[0] = range->count;
    Value result = made->getResult(0);
    result.setType(tensorType(whole).clone(shape));
    return result;
  }

  Value partOfOperand(Operation *op, Value operand) {
    ArrayRef<int64_t> shape = shapeOf(operand);
    if (isa<ReshapeOp>(op)) {
      if (rangeIn(operand))
        return make(operand);
      if (isMadeInPassing(operand.getDefiningOp()))
        return {};
      int64_t points = tensorType(operand).getNumElements();
      return points % rows == 0
                 ? slice(t.reshape(operand, {rows, points / rows}),
                         {start, count})
                 : Value();
    }
    if (auto view = dyn_cast<SliceOp>(op)) {
      bool isWhole = view.getStarts()[0] == 0 && view.getSteps()[0] == 1 &&
                     shape[0] == shapeOf(view.getResult())[0];
      return isWhole ? make(operand) : Value();
    }
    // One for all rows.
    bool isBroadcast = static_cast<int64_t>(shape.size()) <
                           tensorType(op->getResult(0)).getRank() ||
                       shape.front() == 1;
    return isBroadcast ? operand : make(operand);
  }

  TensorBuilder &t;
  int64_t number, rows, start, count;
  llvm::DenseMap<Value, Value> parts;
};

class ProductComposer {
public:
  /// `number`: of the product in its stage.
  ProductComposer(const Product &product, int64_t number)
      : product(product), number(number), builder(product.op),
        t(product.op->getLoc(), builder) {}

  /// Products with parts of the weight, each made by itself: one after another
  /// they are the result, or the result is their sum.
  void composeParts(int64_t partBytes) {
    // More of them would cost more in commands than caches save. Rows that
    // share a scale are in one part.
    constexpr int64_t mostParts = 16, multiple = 128;
    int64_t all = shapeOf(product.weight)[0];
    int64_t parts = std::min(
        mostParts, llvm::divideCeilSigned(bytesOf(product.weight), partBytes));
    int64_t rows = llvm::alignTo(llvm::divideCeilSigned(all, parts), multiple);
    // Parts of a result are in memory beside it.
    if (rows >= all ||
        bytesOf(product.op->getResult(0)) > bytesOf(product.weight))
      return;
    SmallVector<Value> columns;
    Value sum;
    for (int64_t start = 0; start < all; start += rows) {
      int64_t count = std::min(rows, all - start);
      Value weight =
          RowMaker(t, number, all, start, count).make(product.weight);
      if (!weight)
        return;
      if (product.isTransposed) {
        columns.push_back(makeColumns(weight, count));
        continue;
      }
      Value addend = makeAddend(weight, start, count);
      sum = sum ? asProduct(t.add(sum, addend)) : addend;
    }
    int64_t last = tensorType(product.op->getResult(0)).getRank() - 1;
    replaceWith(sum ? sum : asProduct(ConcatOp::create(t.b, columns, last)));
  }

private:
  Value makeColumns(Value weight, int64_t count) {
    Operation *part = t.b.clone(*product.op);
    part->setOperand(1, weight);
    Value result = part->getResult(0);
    SmallVector<int64_t> shape(shapeOf(result));
    shape.back() = count;
    result.setType(tensorType(result).clone(shape));
    return result;
  }
  Value makeAddend(Value weight, int64_t start, int64_t count) {
    int64_t last = tensorType(product.x).getRank() - 1;
    Value columns = t.slice(product.x, last, start, count);
    Operation *part = t.b.clone(*product.op);
    part->setOperand(0, columns);
    part->setOperand(1, weight);
    return part->getResult(0);
  }
  /// `value`, which belongs to the same list as the product.
  Value asProduct(Value value) {
    value.getDefiningOp()->setDiscardableAttrs(
        product.op->getDiscardableAttrDictionary());
    return value;
  }
  void replaceWith(Value value) {
    product.op->getResult(0).replaceAllUsesWith(value);
    product.op->erase();
  }

  Product product;
  int64_t number;
  OpBuilder builder;
  TensorBuilder t;
};

struct ComposeProductsPass
    : codegen::impl::ComposeProductsBase<ComposeProductsPass> {
  using ComposeProductsBase::ComposeProductsBase;

  /// Of rows that look their weights up, unless they are so many that making
  /// all weights, and multiplying by groups, costs less.
  std::optional<Product> lookedUpProductOf(Operation *op) const {
    std::optional<Product> product = productOfEachRow(op);
    std::optional<LookUp> lookUp =
        product ? lookUpOf(product->weight) : std::nullopt;
    if (!lookUp)
      return std::nullopt;
    // Four numbers of a byte take longer to part than two.
    constexpr int64_t fewOfGroup = 2, mostOfGroup = 8;
    int64_t ofGroup = gpu                                  ? 1
                      : numbersOfByte(product->weight) > 2 ? fewOfGroup
                                                           : mostOfGroup;
    return product->rows <= lookUp->groups * ofGroup ? product : std::nullopt;
  }

  void runOnOperation() override {
    forEachStage(getOperation(), [&](LocalStageOp stage) {
      int64_t number = 0;
      for (Operation &op : llvm::make_early_inc_range(stage.getBlock())) {
        std::optional<Product> product = productOf(&op);
        if (!product)
          product = lookedUpProductOf(&op);
        if (!product || !isOfFewerBytes(product->weight))
          continue;
        ProductComposer composer(*product, number++);
        // Weights of such products are made once.
        bool isMadeOnce = !trains(stage) && isProductOfIntegers(&op);
        if (product->rows == 1 || product->isOfEachRow)
          composeRow(*product, gpu);
        else if (partBytes > 0 && product->mayComeApart() && !isMadeOnce)
          composer.composeParts(partBytes);
      }
      removeUnused(stage.getBlock());
    });
  }
};

} // namespace
