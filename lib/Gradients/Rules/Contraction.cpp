//===- Contraction.cpp - Gradients of linear and dot ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../GradientRules.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace ax;

/// The dimensions below `rank` that neither list has.
static SmallVector<int64_t> otherDims(int64_t rank, ArrayRef<int64_t> batch,
                                      ArrayRef<int64_t> contract) {
  return llvm::filter_to_vector(dimsFrom(0, rank), [&](int64_t dim) {
    return !llvm::is_contained(batch, dim) &&
           !llvm::is_contained(contract, dim);
  });
}

/// `dims` of the other operand, in its order: which of the contracted pairs
/// each is.
static SmallVector<int64_t> ascending(ArrayRef<int64_t> keys,
                                      ArrayRef<int64_t> partners) {
  SmallVector<int64_t> order = dimsFrom(0, keys.size());
  llvm::sort(order, [&](int64_t a, int64_t b) { return keys[a] < keys[b]; });
  return llvm::map_to_vector(order, [&](int64_t i) { return partners[i]; });
}

/// `value`, whose dimension i is dimension dims[i] of what is wanted.
static Value arrange(GradientBuilder &g, Value value, ArrayRef<int64_t> dims) {
  return g.transpose(value, invertPermutationVector(dims));
}

static LogicalResult dot(DotOp op, GradientBuilder &g) {
  int64_t lhsRank = shapeOf(op.getLhs()).size();
  int64_t rhsRank = shapeOf(op.getRhs()).size();
  SmallVector<int64_t> lhsBatch(op.getLhsBatch()), rhsBatch(op.getRhsBatch());
  SmallVector<int64_t> lhsFree =
      otherDims(lhsRank, lhsBatch, op.getLhsContract());
  SmallVector<int64_t> rhsFree =
      otherDims(rhsRank, rhsBatch, op.getRhsContract());
  int64_t numBatch = lhsBatch.size(), numLhs = lhsFree.size();
  int64_t rank = numBatch + numLhs + rhsFree.size();
  SmallVector<int64_t> batch = dimsFrom(0, numBatch);
  g.give(op.getLhsMutable(), [&] {
    Value product =
        DotOp::create(g.b, g.ofResult(), op.getRhs(), batch, rhsBatch,
                      dimsFrom(numBatch + numLhs, rank), rhsFree);
    SmallVector<int64_t> dims(lhsBatch);
    llvm::append_range(dims, lhsFree);
    llvm::append_range(dims,
                       ascending(op.getRhsContract(), op.getLhsContract()));
    return arrange(g, product, dims);
  });
  g.give(op.getRhsMutable(), [&] {
    Value product =
        DotOp::create(g.b, op.getLhs(), g.ofResult(), lhsBatch, batch, lhsFree,
                      dimsFrom(numBatch, numBatch + numLhs));
    SmallVector<int64_t> dims(rhsBatch);
    llvm::append_range(dims,
                       ascending(op.getLhsContract(), op.getRhsContract()));
    llvm::append_range(dims, rhsFree);
    return arrange(g, product, dims);
  });
  return success();
}

static LogicalResult linear(LinearOp op, GradientBuilder &g) {
  Value x = op.getX(), w = op.getW(), dy = g.ofResult();
  SmallVector<int64_t> rows = dimsFrom(0, shapeOf(x).size() - 1);
  g.give(op.getXMutable(), [&]() -> Value {
    return LinearOp::create(g.b, dy, w, !op.getTransposeW());
  });
  g.give(op.getWMutable(), [&]() -> Value {
    if (op.getTransposeW())
      std::swap(x, dy);
    ArrayRef<int64_t> none;
    return DotOp::create(g.b, x, dy, none, none, rows, rows);
  });
  return success();
}

void ax::attachContractionGradients(MLIRContext &context) {
  attachGradient<DotOp, dot>(context);
  attachGradient<LinearOp, linear>(context);
}
