//===- ComposeVectors.cpp - Products with one vector ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A matrix times a vector reads each number once: what it costs is reading. A
// library packs or walks its columns as if there were many; a kernel of our own
// reads the matrix as it lies, also what is looked up of a table, and does what
// comes behind the sums.
//
// Example: 128 tokens have a matrix [256, 64] each, their expert's, times their
// column [64, 1]. That is the sum of [128, 256, 64] times [128, 1, 64] along
// the last dimension.
//
//===----------------------------------------------------------------------===//
#include "ForEachStage.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Gradients/TensorBuilder.h"

namespace ax::codegen {
#define GEN_PASS_DEF_COMPOSEVECTORS
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

namespace {

/// A product of matrices with a vector each; numbers of dimensions of both,
/// those of the batch in one order.
struct VectorProduct {
  Operation *op;
  Value matrix, vector;
  SmallVector<int64_t> matrixBatch, vectorBatch;
  int64_t matrixContract, vectorContract;
};

} // namespace

static int64_t numElementsOf(Value value) {
  return tensorType(value).getNumElements();
}

/// Whether the rows of `matrix` that are read lie anywhere: as a whole it would
/// be made first.
static bool isLookedUp(Value matrix) {
  return isa_and_nonnull<GatherOp>(matrix.getDefiningOp());
}

static std::optional<VectorProduct> vectorProductOf(DotOp dot) {
  if (dot.getLhsContract().size() != 1)
    return std::nullopt;
  Value lhs = dot.getLhs(), rhs = dot.getRhs();
  int64_t met = shapeOf(lhs)[dot.getLhsContract().front()];
  for (int64_t dim : dot.getLhsBatch())
    met *= shapeOf(lhs)[dim];
  // With nothing else than what meets, it is a vector.
  bool isColumn = numElementsOf(rhs) == met && numElementsOf(lhs) > met;
  bool isRow = numElementsOf(lhs) == met && numElementsOf(rhs) > met;
  if (isColumn)
    return VectorProduct{dot,
                         lhs,
                         rhs,
                         llvm::to_vector(dot.getLhsBatch()),
                         llvm::to_vector(dot.getRhsBatch()),
                         dot.getLhsContract().front(),
                         dot.getRhsContract().front()};
  // Rows times matrices that lie in memory libraries do as fast.
  if (isRow && isLookedUp(rhs))
    return VectorProduct{dot,
                         rhs,
                         lhs,
                         llvm::to_vector(dot.getRhsBatch()),
                         llvm::to_vector(dot.getLhsBatch()),
                         dot.getRhsContract().front(),
                         dot.getLhsContract().front()};
  return std::nullopt;
}

static std::optional<VectorProduct> vectorProductOf(Operation *op) {
  std::optional<VectorProduct> product;
  if (auto dot = dyn_cast<DotOp>(op)) {
    product = vectorProductOf(dot);
  } else if (auto linear = dyn_cast<LinearOp>(op)) {
    Value x = op->getOperand(0), w = op->getOperand(1);
    int64_t last = tensorType(x).getRank() - 1;
    if (numElementsOf(w) == shapeOf(x)[last])
      product =
          VectorProduct{op, x, w, {}, {}, last, linear.getTransposeW() ? 1 : 0};
  }
  if (!product || numElementsOf(product->matrix) == 0)
    return std::nullopt;
  Type type = elementType(product->matrix);
  bool isPlain = type == elementType(product->vector) && isa<FloatType>(type) &&
                 !isFloat8(type);
  return isPlain ? product : std::nullopt;
}

/// Whether a dimension of `shape` is split, and into how many groups: sums over
/// rows of numbers that lie together are independent so.
static int64_t groupsOf(ArrayRef<int64_t> shape, int64_t dim) {
  int64_t groups = dim + 1 < static_cast<int64_t>(shape.size()) ? 16 : 1;
  while (shape[dim] % groups != 0)
    --groups;
  return groups;
}

static void compose(const VectorProduct &product) {
  OpBuilder builder(product.op);
  TensorBuilder t(product.op->getLoc(), builder);
  ArrayRef<int64_t> shape = shapeOf(product.matrix);
  int64_t rank = shape.size(), summed = product.matrixContract;
  // The vector's dimensions in the matrix's order, and its others as 1.
  SmallVector<int64_t> order, aligned(rank, 1);
  for (int64_t dim = 0; dim < rank; ++dim) {
    auto found = llvm::find(product.matrixBatch, dim);
    if (dim == summed)
      order.push_back(product.vectorContract);
    else if (found != product.matrixBatch.end())
      order.push_back(product.vectorBatch[found - product.matrixBatch.begin()]);
    else
      continue;
    aligned[dim] = shape[dim];
  }
  for (int64_t dim = 0; dim < tensorType(product.vector).getRank(); ++dim)
    if (!llvm::is_contained(order, dim))
      order.push_back(dim);
  auto inGroups = [&](Value x, SmallVector<int64_t> sizes) {
    int64_t groups = groupsOf(shape, summed);
    if (groups > 1) {
      sizes[summed] /= groups;
      sizes.insert(sizes.begin() + summed, groups);
    }
    return t.reshape(t.wide(x), sizes);
  };
  bool isSplit = groupsOf(shape, summed) > 1;
  Value sum =
      t.sum(t.mul(inGroups(product.matrix, llvm::to_vector(shape)),
                  inGroups(t.transpose(product.vector, order), aligned)),
            {isSplit ? summed + 1 : summed}, /*keepDims=*/false);
  if (isSplit)
    sum = t.sum(sum, {summed}, /*keepDims=*/false);
  // What is left is the batch, in the result's order, and then the others.
  SmallVector<int64_t> places;
  auto placeOf = [&](int64_t dim) { return dim > summed ? dim - 1 : dim; };
  for (int64_t dim : product.matrixBatch)
    places.push_back(placeOf(dim));
  for (int64_t dim = 0; dim < rank - 1; ++dim)
    if (!llvm::is_contained(places, dim))
      places.push_back(dim);
  Value result = product.op->getResult(0);
  result.replaceAllUsesWith(t.reshape(
      t.cast(t.transpose(sum, places), elementType(result)), shapeOf(result)));
  product.op->erase();
}

namespace {
struct ComposeVectorsPass
    : codegen::impl::ComposeVectorsBase<ComposeVectorsPass> {
  using ComposeVectorsBase::ComposeVectorsBase;

  void runOnOperation() override {
    forEachStage(getOperation(), [&](LocalStageOp stage) {
      for (Operation &op : llvm::make_early_inc_range(stage.getBlock())) {
        std::optional<VectorProduct> product = vectorProductOf(&op);
        if (product && (!gpu || isLookedUp(product->matrix)))
          compose(*product);
      }
    });
  }
};
} // namespace
