//===- GroupProducts.cpp - Rows that meet matrices that are looked up -----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Mixtures of experts are written as a matrix for each token, looked up by the
// expert's number: memory for as many matrices, each of which meets one row.
// By groups, the rows of an expert, each of its weights is read once.
//
// Example: 512 tokens have 2 of 8 matrices [256, 64] each:
//
//   %m = ax.gather %w[%i] axis 0            [8, 256, 64] -> [1024, 256, 64]
//   %y = ax.dot %m, %x batch [0] x [0] contract [2] x [1]
//
// is axl.grouped_matmul %x, %w[%i] transpose_w, and in the backward pass
//
//   %d = ax.dot %g, %x batch [0] x [0] contract [2] x [2]
//   %dw = ax.scatter_nd add %zeros[%i], %d
//
// is axl.grouped_weight_gradient %x, %g[%i] transpose_w.
//
// For a GPU, whose libraries want to know how many rows there are, rows of a
// group are put together in tiles, each of which meets a copy of its group's
// matrix (RowTiles.h). Where these were too many for few rows, the rows meet
// all matrices in one product, and what is of another group is dropped.
//
//===----------------------------------------------------------------------===//
#include "ForEachStage.h"
#include "LookUps.h"
#include "RowTiles.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Dialect/IndexRange.h"
#include "ax/Local/Local.h"

namespace ax::codegen {
#define GEN_PASS_DEF_GROUPPRODUCTS
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

/// Of floats that libraries multiply.
static bool hasFactors(Type type) {
  return isa<FloatType>(type) && !isFloat8(type);
}

/// A number for each row, `rowsEach` for one of the indices, from 0 on.
static Value groupsOf(TensorBuilder &t, Value indices, int64_t rowsEach,
                      int64_t groups) {
  int64_t count = tensorType(indices).getNumElements();
  if (findRange(indices).low < 0 && !indices.getDefiningOp<CheckIndicesOp>())
    indices = t.select(t.compare(CompareKind::lt, indices, 0),
                       t.add(indices, static_cast<double>(groups)), indices);
  Value flat = t.reshape(indices, {count, 1});
  return t.reshape(t.broadcast(flat, {count, rowsEach}), {count * rowsEach});
}

/// By row and group, whether the row is of it: [rows, groups, 1].
static Value isOfGroup(TensorBuilder &t, Value groups, int64_t count) {
  int64_t rows = tensorType(groups).getNumElements();
  return t.compare(CompareKind::eq,
                   t.cast(t.reshape(groups, {rows, 1, 1}), t.b.getI64Type()),
                   t.indexAlong(1, count, 3));
}

static Value dot(TensorBuilder &t, Value x, Value w, ArrayRef<int64_t> batch,
                 int64_t contractX, int64_t contractW, ArrayRef<int64_t> shape,
                 Type element) {
  return DotOp::create(t.b, RankedTensorType::get(shape, element), x, w, batch,
                       batch, contractX, contractW);
}

/// x [rows, k] times the matrix that each row's group has, of `element`.
static Value multiply(TensorBuilder &t, Value x, const LookUp &matrices,
                      Value groups, bool isTransposed, Type element) {
  Value w = matrices.allOf(t);
  int64_t n = shapeOf(w)[isTransposed ? 1 : 2];
  return GroupedMatmulOp::create(
      t.b, RankedTensorType::get({shapeOf(x)[0], n}, element), x, w, groups,
      isTransposed);
}

static Value multiplyOnGpu(TensorBuilder &t, Value x, const LookUp &matrices,
                           Value groups, bool isTransposed, Type element) {
  int64_t rows = shapeOf(x)[0], count = matrices.groups;
  int64_t contractW = isTransposed ? 2 : 1;
  auto nOf = [&](Value w) { return shapeOf(w)[isTransposed ? 1 : 2]; };
  if (std::optional<TileSizes> sizes = TileSizes::choose(rows, count)) {
    RowTiles tiles(t, groups, count, *sizes);
    Value w = matrices.of(t, tiles.getGroups());
    return tiles.toRows(dot(t, tiles.toTiles(x), w, {0}, 2, contractW,
                            {sizes->tiles, sizes->height, nOf(w)}, element));
  }
  Value w = matrices.allOf(t);
  Value all = dot(t, x, w, {}, 1, contractW, {rows, count, nOf(w)}, element);
  return t.sum(t.select(isOfGroup(t, groups, count), all, 0), {1},
               /*keepDims=*/false);
}

/// By group the sum of x^T y over its rows, of `type`.
static Value multiplyAlongRows(TensorBuilder &t, Value x, Value y, Value groups,
                               RankedTensorType type) {
  return GroupedWeightGradientOp::create(t.b, type, x, y, groups, false);
}

static Value multiplyAlongRowsOnGpu(TensorBuilder &t, Value x, Value y,
                                    Value groups, RankedTensorType type) {
  int64_t rows = shapeOf(y)[0], count = type.getDimSize(0);
  int64_t k = shapeOf(x)[1], n = shapeOf(y)[1];
  Type element = type.getElementType();
  if (std::optional<TileSizes> sizes = TileSizes::choose(rows, count)) {
    RowTiles tiles(t, groups, count, *sizes);
    Value sums = dot(t, tiles.toTiles(x), tiles.toTiles(y), {0}, 1, 1,
                     {sizes->tiles, k, n}, element);
    return ScatterNDOp::create(
        t.b, ScatterKind::add, t.splat(type.getShape(), element, 0),
        t.reshape(tiles.getGroups(), {sizes->tiles, 1}), sums);
  }
  Value each =
      t.select(isOfGroup(t, groups, count),
               t.broadcast(t.reshape(y, {rows, 1, n}), {rows, count, n}), 0);
  Value sums = dot(t, x, each, {}, 0, 0, {k, count, n}, element);
  return t.transpose(sums, {1, 0, 2});
}

namespace {

/// The operands of a dot, one of which is looked up.
struct Side {
  Value value;
  ArrayRef<int64_t> batch;
  int64_t contract;
};

} // namespace

/// The two of `dot` that are not of the batch, what is summed over first.
static SmallVector<int64_t> behindBatch(const Side &side) {
  SmallVector<int64_t> dims{side.contract};
  for (int64_t dim = 0; dim < tensorType(side.value).getRank(); ++dim)
    if (dim != side.contract && !llvm::is_contained(side.batch, dim))
      dims.push_back(dim);
  return dims;
}

/// Groups the product, if it is one of rows with matrices that are looked up.
static bool groupProduct(DotOp dot, bool gpu) {
  if (dot.getLhsContract().size() != 1)
    return false;
  Side sides[] = {
      {dot.getLhs(), dot.getLhsBatch(), dot.getLhsContract().front()},
      {dot.getRhs(), dot.getRhsBatch(), dot.getRhsContract().front()}};
  std::optional<LookUp> lookUp = lookUpOf(sides[0].value);
  bool isLeft = lookUp.has_value();
  if (!isLeft)
    lookUp = lookUpOf(sides[1].value);
  const Side &matrix = sides[isLeft ? 0 : 1], &rows = sides[isLeft ? 1 : 0];
  if (!lookUp || !hasFactors(elementType(matrix.value)) ||
      elementType(matrix.value) != elementType(rows.value))
    return false;
  // All that it was looked up by, and nothing else, is of the batch.
  int64_t batch = lookUp->rankOfIndices();
  if (static_cast<int64_t>(matrix.batch.size()) != batch ||
      !llvm::all_of(matrix.batch, [&](int64_t dim) { return dim < batch; }))
    return false;
  ArrayRef<int64_t> all = shapeOf(rows.value);
  int64_t groups = lookUp->groups, count = lookUp->numIndices();
  int64_t k = all[rows.contract];
  if (count == 0 || k == 0 || tensorType(rows.value).getNumElements() == 0)
    return false;
  int64_t rowsEach = tensorType(rows.value).getNumElements() / (count * k);
  // Fewer are copied sooner than all are made and packed, and of single columns
  // sums read them where they are.
  constexpr int64_t fewColumns = 8;
  int64_t n = tensorType(matrix.value).getNumElements() / (count * k);
  if (count <= groups || n < fewColumns)
    return false;
  OpBuilder builder(dot);
  TensorBuilder t(dot.getLoc(), builder);
  // Rows in the order of what they are looked up by.
  SmallVector<int64_t> order(batch);
  for (auto [ofMatrix, ofRows] : llvm::zip_equal(matrix.batch, rows.batch))
    order[ofMatrix] = ofRows;
  SmallVector<int64_t> others = behindBatch(rows);
  order.append(others.begin() + 1, others.end());
  order.push_back(rows.contract);
  Value x = t.reshape(t.transpose(rows.value, order), {count * rowsEach, k});
  bool isTransposed = matrix.contract == batch + 1;
  Value indices = lookUp->indices;
  Value y = (gpu ? multiplyOnGpu : multiply)(
      t, x, *lookUp, groupsOf(t, indices, rowsEach, groups), isTransposed,
      elementType(dot.getResult()));
  // [indices..., other dimensions of rows..., n], in the product's order.
  SmallVector<int64_t> shape(shapeOf(indices)), places;
  for (int64_t dim : ArrayRef(others).drop_front())
    shape.push_back(all[dim]);
  shape.push_back(shapeOf(y)[1]);
  int64_t last = static_cast<int64_t>(shape.size()) - 1;
  llvm::append_range(places, matrix.batch);
  if (isLeft)
    places.push_back(last);
  for (int64_t dim = batch; dim < last; ++dim)
    places.push_back(dim);
  if (!isLeft)
    places.push_back(last);
  dot.replaceAllUsesWith(t.transpose(t.reshape(y, shape), places));
  dot.erase();
  return true;
}

/// Groups a sum of outer products, each of which goes to one of the matrices.
static bool groupGradient(ScatterNDOp sum, bool gpu) {
  Value updates = sum.getUpdates();
  bool isTurned = false;
  while (Operation *op = updates.getDefiningOp()) {
    auto cast = dyn_cast<CastOp>(op);
    auto turn = dyn_cast<TransposeOp>(op);
    // Narrow floats are widened before they are added up.
    bool widens = cast && isNarrowFloat(elementType(cast.getOperand()));
    if (!widens && !(turn && turnsMatrices(turn)))
      break;
    isTurned ^= turn != nullptr;
    updates = op->getOperand(0);
  }
  auto dot = updates.getDefiningOp<DotOp>();
  auto type = tensorType(sum.getResult());
  int64_t batch = tensorType(sum.getIndices()).getRank() - 1;
  if (!dot || sum.getKind() != ScatterKind::add || type.getRank() != 3 ||
      splatNumber(sum.getOperand()) != 0.0 ||
      tensorType(dot).getRank() != batch + 2 ||
      shapeOf(sum.getIndices()).back() != 1 ||
      static_cast<int64_t>(dot.getLhsBatch().size()) != batch ||
      dot.getLhsContract().size() != 1 ||
      !hasFactors(elementType(dot.getLhs())) ||
      elementType(dot.getLhs()) != elementType(dot.getRhs()))
    return false;
  Side sides[] = {
      {dot.getLhs(), dot.getLhsBatch(), dot.getLhsContract().front()},
      {dot.getRhs(), dot.getRhsBatch(), dot.getRhsContract().front()}};
  int64_t count = tensorType(sum.getIndices()).getNumElements();
  int64_t rowsEach = shapeOf(dot.getLhs())[dot.getLhsContract().front()];
  int64_t groups = type.getDimSize(0);
  if (count * rowsEach == 0 || tensorType(dot).getNumElements() == 0)
    return false;
  OpBuilder builder(sum);
  TensorBuilder t(sum.getLoc(), builder);
  Value factors[2];
  for (int i : {0, 1}) {
    const Side &side = sides[i];
    SmallVector<int64_t> order(side.batch);
    SmallVector<int64_t> others = behindBatch(side);
    if (others.size() != 2)
      return false;
    llvm::append_range(order, others);
    factors[i] = t.reshape(t.transpose(side.value, order),
                           {count * rowsEach, shapeOf(side.value)[others[1]]});
  }
  if (isTurned)
    std::swap(factors[0], factors[1]);
  Value made = (gpu ? multiplyAlongRowsOnGpu : multiplyAlongRows)(
      t, factors[0], factors[1],
      groupsOf(t, sum.getIndices(), rowsEach, groups), type);
  sum.replaceAllUsesWith(made);
  sum.erase();
  return true;
}

namespace {
struct GroupProductsPass : codegen::impl::GroupProductsBase<GroupProductsPass> {
  using GroupProductsBase::GroupProductsBase;

  void runOnOperation() override {
    forEachStage(getOperation(), [&](LocalStageOp stage) {
      bool isChanged = false;
      for (Operation &op : llvm::make_early_inc_range(stage.getBlock())) {
        if (auto dot = dyn_cast<DotOp>(op))
          isChanged |= groupProduct(dot, gpu);
        else if (auto sum = dyn_cast<ScatterNDOp>(op))
          isChanged |= groupGradient(sum, gpu);
      }
      // What was looked up, and outer products.
      if (isChanged)
        removeUnused(stage.getBlock());
    });
  }
};
} // namespace
