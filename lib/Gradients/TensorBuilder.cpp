//===- TensorBuilder.cpp - Short names for ax operations ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Gradients/TensorBuilder.h"

using namespace mlir;
using namespace ax;

Value TensorBuilder::cast(Value x, Type element) {
  if (elementType(x) == element)
    return x;
  return CastOp::create(b, RankedTensorType::get(shapeOf(x), element), x);
}

Value TensorBuilder::wide(Value x) {
  bool isNarrow = elementType(x).getIntOrFloatBitWidth() < 32;
  return isNarrow ? cast(x, b.getF32Type()) : x;
}

Value TensorBuilder::number(Value like, double value) {
  return splat({}, elementType(like), value);
}

Value TensorBuilder::splat(Dims shape, Type element, double value) {
  return createSplat(b, b.getLoc(), RankedTensorType::get(shape, element),
                     value);
}

Value TensorBuilder::indexAlong(int64_t dim, int64_t size, int64_t rank) {
  SmallVector<int64_t> shape(rank, 1);
  shape[dim] = size;
  return IotaOp::create(b, RankedTensorType::get(shape, b.getI64Type()), dim);
}

Value TensorBuilder::isRowOf(RankedTensorType type, Dims rows) {
  Value any;
  for (int64_t row : rows) {
    Value index = indexAlong(0, type.getDimSize(0), type.getRank());
    Value isRow = compare(CompareKind::eq, index, static_cast<double>(row));
    any = any ? binary(BinaryKind::logical_or, any, isRow) : isRow;
  }
  return any;
}

Value TensorBuilder::broadcast(Value x, Dims shape) {
  if (shapeOf(x) == shape)
    return x;
  return BroadcastOp::create(b, RankedTensorType::get(shape, elementType(x)),
                             x);
}

Value TensorBuilder::slice(Value x, int64_t dim, int64_t start, int64_t count) {
  SmallVector<int64_t> shape(shapeOf(x));
  SmallVector<int64_t> starts(shape.size(), 0), steps(shape.size(), 1);
  if (shape[dim] == count)
    return x;
  shape[dim] = count;
  starts[dim] = start;
  return SliceOp::create(b, RankedTensorType::get(shape, elementType(x)), x,
                         starts, steps);
}

Value TensorBuilder::pad(Value x, Dims low, Dims high) {
  auto isZero = [](int64_t n) { return n == 0; };
  if (llvm::all_of(low, isZero) && llvm::all_of(high, isZero))
    return x;
  return PadOp::create(b, x, number(x, 0), low, high, PadMode::constant);
}

Value TensorBuilder::reduce(ReduceOpKind kind, Value x, Dims dims,
                            bool keepDims) {
  return dims.empty() ? x : ReduceOp::create(b, kind, x, dims, keepDims);
}

Value TensorBuilder::sumTo(Value x, Dims shape) {
  Dims from = shapeOf(x);
  int64_t added = from.size() - shape.size();
  SmallVector<int64_t> dims;
  for (int64_t dim = 0, rank = from.size(); dim < rank; ++dim)
    if (dim < added || (shape[dim - added] == 1 && from[dim] != 1))
      dims.push_back(dim);
  return reshape(sum(x, dims, /*keepDims=*/false), shape);
}

Value TensorBuilder::keepDims(Value reduced, Dims operandShape, Dims dims) {
  SmallVector<int64_t> shape(operandShape);
  for (int64_t dim : dims)
    shape[dim] = 1;
  return reshape(reduced, shape);
}
