//===- InferReduction.cpp - Result types of reductions, norms, scans ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "InferTypes.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace ax;

static LogicalResult checkDim(std::optional<Location> location, int64_t dim,
                              ArrayRef<int64_t> shape) {
  if (inRange(dim, shape.size()))
    return success();
  return emitOptionalError(location, "dim ", dim, " is out of range of rank ",
                           shape.size());
}

AX_INFER(ReduceOp) {
  ArrayRef<int64_t> shape = shapeOf(op.getOperand()), dims = op.getDims();
  for (auto [i, dim] : llvm::enumerate(dims))
    if (!inRange(dim, shape.size()) || (i && dims[i - 1] >= dim))
      return emitOptionalError(location,
                               "dims must be sorted, unique and below rank ",
                               shape.size());
  SmallVector<int64_t> result;
  for (auto [i, size] : llvm::enumerate(shape)) {
    if (!llvm::is_contained(dims, static_cast<int64_t>(i)))
      result.push_back(size);
    else if (op.getKeepDims())
      result.push_back(1);
  }
  return give(types, result, elementOf(op.getOperand()));
}

AX_INFER(ArgReduceOp) {
  SmallVector<int64_t> shape(shapeOf(op.getOperand()));
  if (failed(checkDim(location, op.getDim(), shape)))
    return failure();
  bool isEmpty = shape[op.getDim()] == 0;
  shape[op.getDim()] = 1;
  if (isEmpty && !llvm::is_contained(shape, 0))
    return emitOptionalError(location, "dim ", op.getDim(),
                             " is empty: nothing is largest or smallest");
  return give(types, shape, IntegerType::get(context, 64));
}

AX_INFER(CumulativeOp) {
  if (failed(checkDim(location, op.getDim(), shapeOf(op.getOperand()))))
    return failure();
  return give(types, shapeOf(op.getOperand()), elementOf(op.getOperand()));
}

AX_INFER(TopKOp) {
  SmallVector<int64_t> shape(shapeOf(op.getOperand()));
  if (failed(checkDim(location, op.getDim(), shape)))
    return failure();
  int64_t k = op.getK();
  if (k < 0 || k > shape[op.getDim()])
    return emitOptionalError(location, "k = ", k, " of a dimension of ",
                             shape[op.getDim()]);
  shape[op.getDim()] = k;
  (void)give(types, shape, elementOf(op.getOperand()));
  return give(types, shape, IntegerType::get(context, 64));
}

AX_INFER(NonMaxSuppressionOp) {
  ArrayRef<int64_t> boxes = shapeOf(op.getBoxes());
  ArrayRef<int64_t> scores = shapeOf(op.getScores());
  if (failed(checkElements(location, {op.getBoxes(), op.getScores()})))
    return failure();
  if (boxes.size() != 3 || scores.size() != 3 || boxes[2] != 4 ||
      boxes[0] != scores[0] || boxes[1] != scores[2])
    return emitOptionalError(location, "boxes ", op.getBoxes().getType(),
                             " and scores ", op.getScores().getType(),
                             " do not fit");
  int64_t limit = op.getLimit();
  if (limit < 0 || limit > boxes[1])
    return emitOptionalError(location, "limit ", limit, " of ", boxes[1],
                             " boxes");
  return give(types, {scores[0], scores[1], limit},
              IntegerType::get(context, 64));
}

AX_INFER(SoftmaxOp) {
  if (failed(checkDim(location, op.getDim(), shapeOf(op.getOperand()))))
    return failure();
  return give(types, shapeOf(op.getOperand()), elementOf(op.getOperand()));
}

AX_INFER(FakeQuantizeOp) {
  ArrayRef<int64_t> shape = shapeOf(op.getOperand());
  if (shape.empty())
    return emitOptionalError(location, "a number is no row");
  return give(types, shape, elementOf(op.getOperand()));
}

template <typename Adaptor>
static LogicalResult inferNorm(std::optional<Location> location, Adaptor op,
                               SmallVectorImpl<Type> &types) {
  ArrayRef<int64_t> shape = shapeOf(op.getX());
  if (failed(checkDim(location, op.getAxis(), shape)))
    return failure();
  if (failed(checkElements(location, {op.getX(), op.getScale(), op.getBias()})))
    return failure();
  ArrayRef<int64_t> row = shape.drop_front(op.getAxis());
  for (Value parameter : {op.getScale(), op.getBias()})
    if (parameter && shapeOf(parameter) != row)
      return emitOptionalError(location,
                               "scale and bias must have the shape "
                               "of the normalised dimensions, got ",
                               parameter.getType());
  return give(types, shape, elementOf(op.getX()));
}

AX_INFER(LayerNormOp) { return inferNorm(location, op, types); }
AX_INFER(RMSNormOp) { return inferNorm(location, op, types); }
