//===- LocalizeBuild.cpp - Small pieces of local programs -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Localizer.h"

using namespace mlir;

namespace ax::codegen {

RankedTensorType Localizer::localType(Type type) {
  return localPartType(cast<RankedTensorType>(type), mesh);
}

Value Localizer::castTo(Value value, Type element) {
  RankedTensorType type = tensorType(value);
  if (type.getElementType() == element)
    return value;
  return CastOp::create(builder, type.clone(element), value);
}

RankedTensorType Localizer::i64Type(ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, builder.getI64Type());
}

RankedTensorType Localizer::boolType(ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, builder.getI1Type());
}

Value Localizer::constant(Attribute value) {
  auto type = RankedTensorType::get({}, cast<TypedAttr>(value).getType());
  return ConstantOp::create(builder, DenseElementsAttr::get(type, value));
}

Value Localizer::constantInt(int64_t value) {
  return constant(builder.getI64IntegerAttr(value));
}

Value Localizer::axisIndex(const sharding::SubAxes &axes) {
  auto attr = AxesAttr::get(builder.getContext(), axes, mesh);
  Value &index = axisIndices[attr];
  if (!index) {
    // At the start of the program, where it is known to everybody.
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(builder.getInsertionBlock());
    index = AxisIndexOp::create(builder, i64Type(), attr);
  }
  return index;
}

static RankedTensorType broadcastType(Value lhs, Value rhs, Type element) {
  auto shape =
      broadcastShapes(tensorType(lhs).getShape(), tensorType(rhs).getShape());
  assert(succeeded(shape) && "shapes made by localisation fit");
  return RankedTensorType::get(*shape, element);
}

Value Localizer::binary(BinaryKind kind, Value lhs, Value rhs) {
  auto type = broadcastType(lhs, rhs, tensorType(lhs).getElementType());
  return BinaryOp::create(builder, type, kind, lhs, rhs);
}

Value Localizer::compare(CompareKind kind, Value lhs, Value rhs) {
  auto type = broadcastType(lhs, rhs, builder.getI1Type());
  return CompareOp::create(builder, type, kind, lhs, rhs);
}

Value Localizer::select(Value condition, Value onTrue, Value onFalse) {
  auto type =
      broadcastType(onTrue, onFalse, tensorType(onTrue).getElementType());
  auto shape =
      broadcastShapes(type.getShape(), tensorType(condition).getShape());
  assert(succeeded(shape) && "shapes made by localisation fit");
  return SelectOp::create(builder, type.clone(*shape), condition, onTrue,
                          onFalse);
}

Value Localizer::reshape(Value value, ArrayRef<int64_t> shape) {
  RankedTensorType type = tensorType(value);
  if (type.getShape() == shape)
    return value;
  return ReshapeOp::create(builder, type.clone(shape), value);
}

Value Localizer::dynamicSlice(Value value, ValueRange starts,
                              ArrayRef<int64_t> shape) {
  return DynamicSliceOp::create(builder, tensorType(value).clone(shape), value,
                                starts);
}

Value Localizer::globalIndex(const sharding::DimLayout &layout, int64_t dim,
                             int64_t rank) {
  int64_t localSize = layout.localSize();
  SmallVector<int64_t> shape(rank, 1);
  shape[dim] = localSize;
  if (layout.factors.size() == 1) {
    Value index = IotaOp::create(builder, i64Type(shape), dim);
    const sharding::Factor &factor = layout.factors.front();
    if (factor.axes.empty())
      return index;
    Value start = binary(BinaryKind::mul, axisIndex(factor.axes),
                         constantInt(factor.localSize()));
    return binary(BinaryKind::add, index, start);
  }
  // Local index and rank each contribute a digit to every factor; what the
  // local index contributes is known now.
  std::vector<int64_t> fromLocal(localSize, 0);
  Value fromRank;
  int64_t weight = 1, localWeight = 1;
  for (const sharding::Factor &factor : llvm::reverse(layout.factors)) {
    for (int64_t i = 0; i < localSize; ++i)
      fromLocal[i] += i / localWeight % factor.localSize() * weight;
    if (!factor.axes.empty()) {
      Value start = binary(BinaryKind::mul, axisIndex(factor.axes),
                           constantInt(factor.localSize() * weight));
      fromRank = fromRank ? binary(BinaryKind::add, fromRank, start) : start;
    }
    weight *= factor.size;
    localWeight *= factor.localSize();
  }
  Value index = ConstantOp::create(
      builder,
      DenseElementsAttr::get(i64Type(shape), ArrayRef<int64_t>(fromLocal)));
  return fromRank ? binary(BinaryKind::add, index, fromRank) : index;
}

} // namespace ax::codegen
