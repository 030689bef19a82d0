//===- InferShape.cpp - Types of ops that move elements -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "InferTypes.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace ax;

//===----------------------------------------------------------------------===//
// Inferred
//===----------------------------------------------------------------------===//

AX_INFER(TransposeOp) {
  ArrayRef<int64_t> shape = shapeOf(op.getOperand());
  if (!isPermutation(op.getPermutation(), shape.size()))
    return emitOptionalError(location, "[", op.getPermutation(),
                             "] is not a permutation of ", shape.size(),
                             " dimensions");
  SmallVector<int64_t> result;
  for (int64_t dim : op.getPermutation())
    result.push_back(shape[dim]);
  return give(types, result, elementOf(op.getOperand()));
}

AX_INFER(ConcatOp) {
  if (op.getOperands().empty())
    return emitOptionalError(location, "needs at least one operand");
  Value first = op.getOperands().front();
  SmallVector<int64_t> shape(shapeOf(first));
  int64_t dim = op.getDim();
  if (!inRange(dim, shape.size()))
    return emitOptionalError(location, "dim ", dim, " is out of range of rank ",
                             shape.size());
  shape[dim] = 0;
  for (Value operand : op.getOperands()) {
    SmallVector<int64_t> other(shapeOf(operand));
    if (elementOf(operand) != elementOf(first) || other.size() != shape.size())
      return emitOptionalError(location,
                               "operands do not fit: ", first.getType(),
                               " and ", operand.getType());
    int64_t size = std::exchange(other[dim], shape[dim]);
    if (other != shape)
      return emitOptionalError(location,
                               "operands do not fit: ", first.getType(),
                               " and ", operand.getType());
    shape[dim] += size;
  }
  return checkedGive(location, types, shape, elementOf(first));
}

AX_INFER(PadOp) {
  SmallVector<int64_t> shape(shapeOf(op.getOperand()));
  if (op.getLow().size() != shape.size() || op.getHigh().size() != shape.size())
    return emitOptionalError(location, "needs one low and high per dimension");
  bool constant = op.getMode() == PadMode::constant;
  if (constant != static_cast<bool>(op.getValue()))
    return emitOptionalError(location,
                             "mode constant, and only it, has a value");
  if (op.getValue() && (!shapeOf(op.getValue()).empty() ||
                        elementOf(op.getValue()) != elementOf(op.getOperand())))
    return emitOptionalError(location, "value must be a scalar of the "
                                       "operand's element type");
  for (auto [i, size] : llvm::enumerate(shape)) {
    int64_t low = op.getLow()[i], high = op.getHigh()[i];
    if (low < 0 || high < 0 || low > maxSize || high > maxSize)
      return emitOptionalError(location, "dimension ", i, ": low ", low,
                               " and high ", high, " are not at least 0");
    if (!constant && size == 0 && low + high > 0)
      return emitOptionalError(location,
                               "nothing to repeat in the empty "
                               "dimension ",
                               i);
    if (op.getMode() == PadMode::reflect && size == 1 && low + high > 0)
      return emitOptionalError(location, "nothing to reflect in dimension ", i);
    size += low + high;
  }
  return checkedGive(location, types, shape, elementOf(op.getOperand()));
}

/// Indices are clamped to what is there, so something must be.
static LogicalResult checkChoice(std::optional<Location> location,
                                 ArrayRef<int64_t> from,
                                 ArrayRef<int64_t> result) {
  if (!llvm::is_contained(from, 0) || llvm::is_contained(result, 0))
    return success();
  return emitOptionalError(location,
                           "nothing to choose from in an empty dimension");
}

AX_INFER(GatherOp) {
  ArrayRef<int64_t> shape = shapeOf(op.getOperand());
  if (!inRange(op.getAxis(), shape.size()))
    return emitOptionalError(location, "axis ", int64_t(op.getAxis()),
                             " is out of range of rank ", shape.size());
  SmallVector<int64_t> result(shape.take_front(op.getAxis()));
  llvm::append_range(result, shapeOf(op.getIndices()));
  llvm::append_range(result, shape.drop_front(op.getAxis() + 1));
  if (failed(checkChoice(location, shape.slice(op.getAxis(), 1), result)))
    return failure();
  return checkedGive(location, types, result, elementOf(op.getOperand()));
}

AX_INFER(GatherGradientOp) {
  ArrayRef<int64_t> updates = shapeOf(op.getUpdates()),
                    at = shapeOf(op.getIndices());
  int64_t axis = op.getAxis(), rank = updates.size(), depth = at.size();
  if (axis < 0 || axis + depth > rank || updates.slice(axis, depth) != at)
    return emitOptionalError(location, "indices ", op.getIndices().getType(),
                             " do not fit updates ", op.getUpdates().getType(),
                             " at axis ", axis);
  int64_t size = op.getSize();
  if (size < 0 || size > maxSize)
    return emitOptionalError(location, "size ", size, " is out of range");
  if (failed(checkChoice(location, size, updates)))
    return failure();
  SmallVector<int64_t> shape(updates.take_front(axis));
  shape.push_back(size);
  llvm::append_range(shape, updates.drop_front(axis + depth));
  return checkedGive(location, types, shape, elementOf(op.getUpdates()));
}

static LogicalResult checkElementsIndices(std::optional<Location> location,
                                          Value operand, Value indices,
                                          int64_t axis) {
  ArrayRef<int64_t> shape = shapeOf(operand), at = shapeOf(indices);
  bool fits = shape.size() == at.size() && inRange(axis, shape.size());
  for (size_t i = 0; fits && i < shape.size(); ++i)
    fits = static_cast<int64_t>(i) == axis || at[i] <= shape[i];
  if (fits)
    return success();
  return emitOptionalError(location, "indices ", indices.getType(),
                           " do not fit operand ", operand.getType(),
                           " along axis ", axis);
}

AX_INFER(GatherElementsOp) {
  if (failed(checkElementsIndices(location, op.getOperand(), op.getIndices(),
                                  op.getAxis())))
    return failure();
  if (failed(checkChoice(location, shapeOf(op.getOperand()),
                         shapeOf(op.getIndices()))))
    return failure();
  return give(types, shapeOf(op.getIndices()), elementOf(op.getOperand()));
}

AX_INFER(GatherNDOp) {
  ArrayRef<int64_t> shape = shapeOf(op.getOperand()),
                    at = shapeOf(op.getIndices());
  int64_t batch = op.getBatchDims(), depth = at.empty() ? 0 : at.back();
  if (batch < 0 || at.empty() || batch >= static_cast<int64_t>(at.size()) ||
      depth < 0 || batch + depth > static_cast<int64_t>(shape.size()) ||
      shape.take_front(batch) != at.take_front(batch))
    return emitOptionalError(location, "indices ", op.getIndices().getType(),
                             " do not fit operand ", op.getOperand().getType(),
                             " with ", batch, " batch dimensions");
  SmallVector<int64_t> result(at.drop_back());
  llvm::append_range(result, shape.drop_front(batch + depth));
  if (failed(checkChoice(location, shape.slice(batch, depth), result)))
    return failure();
  return checkedGive(location, types, result, elementOf(op.getOperand()));
}

AX_INFER(ScatterElementsOp) {
  if (failed(checkElementsIndices(location, op.getOperand(), op.getIndices(),
                                  op.getAxis())))
    return failure();
  if (shapeOf(op.getIndices()) != shapeOf(op.getUpdates()) ||
      elementOf(op.getUpdates()) != elementOf(op.getOperand()))
    return emitOptionalError(location, "updates ", op.getUpdates().getType(),
                             " do not fit indices ", op.getIndices().getType(),
                             " and operand ", op.getOperand().getType());
  return give(types, shapeOf(op.getOperand()), elementOf(op.getOperand()));
}

AX_INFER(ScatterNDOp) {
  ArrayRef<int64_t> shape = shapeOf(op.getOperand()),
                    at = shapeOf(op.getIndices());
  int64_t depth = at.empty() ? -1 : at.back();
  if (depth < 0 || depth > static_cast<int64_t>(shape.size()))
    return emitOptionalError(location, "indices ", op.getIndices().getType(),
                             " do not fit operand ", op.getOperand().getType());
  SmallVector<int64_t> updates(at.drop_back());
  llvm::append_range(updates, shape.drop_front(depth));
  if (shapeOf(op.getUpdates()) != ArrayRef<int64_t>(updates) ||
      elementOf(op.getUpdates()) != elementOf(op.getOperand()))
    return emitOptionalError(location, "updates ", op.getUpdates().getType(),
                             " do not fit indices ", op.getIndices().getType(),
                             " and operand ", op.getOperand().getType());
  return give(types, shape, elementOf(op.getOperand()));
}

//===----------------------------------------------------------------------===//
// Given
//===----------------------------------------------------------------------===//

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValueAttr(); }

LogicalResult ConstantOp::verify() {
  if (!sameWithoutLayout(getValue().getShapedType(), getResult().getType()))
    return emitOpError("value of type ")
           << getValue().getShapedType() << " for a result of type "
           << getResult().getType();
  return success();
}

LogicalResult IotaOp::verify() {
  if (!inRange(getDim(), shapeOf(getResult()).size()))
    return emitOpError("dim ")
           << int64_t(getDim()) << " is out of range of rank "
           << shapeOf(getResult()).size();
  if (elementOf(getResult()).isInteger(1))
    return emitOpError("cannot count in i1");
  return success();
}

LogicalResult ReshapeOp::verify() {
  if (tensorType(getOperand()).getNumElements() !=
          tensorType(getResult()).getNumElements() ||
      elementOf(getOperand()) != elementOf(getResult()))
    return emitOpError("operand and result must have the same elements, got ")
           << getOperand().getType() << " and " << getResult().getType();
  return success();
}

LogicalResult BroadcastOp::verify() {
  ArrayRef<int64_t> shape = shapeOf(getResult());
  auto joined = broadcastShapes(shapeOf(getOperand()), shape);
  if (failed(joined) || ArrayRef<int64_t>(*joined) != shape ||
      elementOf(getOperand()) != elementOf(getResult()))
    return emitOpError("cannot broadcast ")
           << getOperand().getType() << " to " << getResult().getType();
  return success();
}

LogicalResult SliceOp::verify() {
  ArrayRef<int64_t> from = shapeOf(getOperand()), to = shapeOf(getResult());
  if (from.size() != to.size() || getStarts().size() != to.size() ||
      getSteps().size() != to.size() ||
      elementOf(getOperand()) != elementOf(getResult()))
    return emitOpError("needs one start and step per dimension and one "
                       "element type");
  for (size_t i = 0; i < to.size(); ++i) {
    int64_t start = getStarts()[i], step = getSteps()[i];
    if (step == 0 || step < -maxSize || step > maxSize)
      return emitOpError("step of dimension ") << i << " is " << step;
    if (to[i] == 0)
      continue;
    int64_t way = cappedProduct(to[i] - 1, std::abs(step));
    if (!inRange(start, from[i]) || way >= from[i] ||
        !inRange(step < 0 ? start - way : start + way, from[i]))
      return emitOpError("dimension ")
             << i << " reads " << to[i] << " elements from " << start
             << " in steps of " << step << ", but has " << from[i];
  }
  return success();
}

LogicalResult DynamicSliceOp::verify() {
  size_t rank = shapeOf(getOperand()).size();
  if (getStarts().size() != rank || shapeOf(getResult()).size() != rank ||
      elementOf(getOperand()) != elementOf(getResult()))
    return emitOpError("needs one start per dimension and one element type");
  for (Value start : getStarts())
    if (!shapeOf(start).empty())
      return emitOpError("starts must be scalars");
  return success();
}
