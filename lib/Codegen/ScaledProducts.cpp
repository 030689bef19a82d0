//===- ScaledProducts.cpp - Products of numbers of eight bits -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ScaledProducts.h"

using namespace mlir;

namespace ax::codegen {

std::optional<int64_t> resultDimOf(Operation *product, unsigned factor,
                                   int64_t dim) {
  int64_t last = tensorType(product->getResult(0)).getRank() - 1;
  if (auto linear = dyn_cast<LinearOp>(product)) {
    if (factor == 1)
      return dim == (linear.getTransposeW() ? 0 : 1) ? std::optional(last)
                                                     : std::nullopt;
    return dim < last ? std::optional(dim) : std::nullopt;
  }
  if (isa<ConvOp>(product)) {
    constexpr int64_t channels = 1;
    if (dim != 0)
      return std::nullopt;
    return factor == 1 ? channels : dim;
  }
  auto dot = cast<DotOp>(product);
  auto numberOf = [](ArrayRef<int64_t> batch, ArrayRef<int64_t> contract,
                     int64_t dim) -> std::optional<int64_t> {
    const int64_t *place = llvm::find(batch, dim);
    if (place != batch.end())
      return place - batch.begin();
    if (llvm::is_contained(contract, dim))
      return std::nullopt;
    // Those of a batch come first, then the others in their order.
    int64_t number = batch.size();
    for (int64_t before = 0; before < dim; ++before)
      number += !llvm::is_contained(batch, before) &&
                !llvm::is_contained(contract, before);
    return number;
  };
  if (factor == 0)
    return numberOf(dot.getLhsBatch(), dot.getLhsContract(), dim);
  int64_t batch = dot.getRhsBatch().size();
  std::optional<int64_t> number =
      numberOf(dot.getRhsBatch(), dot.getRhsContract(), dim);
  // The other factor's are in front of its own.
  if (number && *number >= batch)
    *number += tensorType(dot.getLhs()).getRank() - batch -
               static_cast<int64_t>(dot.getLhsContract().size());
  return number;
}

/// A constant of whole numbers less `offset`, which are in the range of i8.
static Value narrowed(Value constant, int32_t offset, OpBuilder &builder) {
  auto dense =
      cast<DenseElementsAttr>(constant.getDefiningOp<ConstantOp>().getValue());
  SmallVector<int8_t> numbers;
  if (isa<FloatType>(dense.getElementType()))
    for (const APFloat &number : dense.getValues<APFloat>())
      numbers.push_back(static_cast<int8_t>(number.convertToDouble() - offset));
  else
    for (const APInt &number : dense.getValues<APInt>())
      numbers.push_back(static_cast<int8_t>(number.getSExtValue() - offset));
  RankedTensorType type = tensorType(constant).clone(builder.getIntegerType(8));
  return ConstantOp::create(builder, constant.getLoc(), type,
                            DenseElementsAttr::get(type, ArrayRef(numbers)));
}

Value numbersOf(const ScaledFactor &factor, OpBuilder &builder) {
  Value numbers = factor.numbers;
  if (!isInteger8(elementType(numbers)) && !isFloat8(elementType(numbers)))
    numbers = narrowed(numbers, factor.offset, builder);
  Type element = elementType(numbers);
  for (Operation *move : factor.moves) {
    Operation *moved = builder.clone(*move);
    moved->setOperand(0, numbers);
    numbers = moved->getResult(0);
    numbers.setType(tensorType(numbers).clone(element));
  }
  return numbers;
}

Value alongResult(Operation *product, unsigned factor,
                  const FactorParameter &parameter, TensorBuilder &t) {
  SmallVector<int64_t> shape;
  if (parameter.dim) {
    std::optional<int64_t> dim = resultDimOf(product, factor, *parameter.dim);
    if (!dim)
      return Value();
    RankedTensorType result = tensorType(product->getResult(0));
    shape.assign(result.getRank(), 1);
    shape[*dim] = result.getDimSize(*dim);
  }
  return t.reshape(parameter.value, shape);
}

} // namespace ax::codegen
