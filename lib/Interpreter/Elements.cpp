//===- Elements.cpp - MLIR attributes and host tensors --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Interpreter/Elements.h"

#include "ax/Support/Error.h"
#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;

namespace ax::interpreter {

std::optional<DType> toDType(Type elementType) {
  if (elementType.isF32())
    return DType::F32;
  if (elementType.isF64())
    return DType::F64;
  if (elementType.isF16())
    return DType::F16;
  if (elementType.isBF16())
    return DType::BF16;
  if (isa<Float8E4M3FNType>(elementType))
    return DType::F8E4M3FN;
  if (isa<Float8E5M2Type>(elementType))
    return DType::F8E5M2;
  auto integer = dyn_cast<IntegerType>(elementType);
  if (!integer)
    return std::nullopt;
  bool isUnsigned = integer.isUnsigned();
  switch (integer.getWidth()) {
  case 1:
    return DType::Bool;
  case 8:
    return isUnsigned ? DType::U8 : DType::I8;
  case 16:
    return isUnsigned ? DType::U16 : DType::I16;
  case 32:
    return isUnsigned ? DType::U32 : DType::I32;
  case 64:
    return isUnsigned ? DType::U64 : DType::I64;
  default:
    return std::nullopt;
  }
}

Type toElementType(DType type, MLIRContext *context) {
  switch (type) {
  case DType::F32:
    return Float32Type::get(context);
  case DType::F64:
    return Float64Type::get(context);
  case DType::F16:
    return Float16Type::get(context);
  case DType::BF16:
    return BFloat16Type::get(context);
  case DType::F8E4M3FN:
    return Float8E4M3FNType::get(context);
  case DType::F8E5M2:
    return Float8E5M2Type::get(context);
  default:
    break;
  }
  if (type == DType::Bool)
    return IntegerType::get(context, 1);
  return IntegerType::get(context, 8 * byteSize(type),
                          isUnsigned(type) ? IntegerType::Unsigned
                                           : IntegerType::Signless);
}

RankedTensorType toTensorType(const HostTensor &tensor, MLIRContext *context) {
  return RankedTensorType::get(tensor.getShape(),
                               toElementType(tensor.getType(), context));
}

/// Bytes of which the first `elementSize` repeat to fill `tensor`.
static void fillWith(HostTensor &tensor, const char *element) {
  size_t elementSize = byteSize(tensor.getType());
  uint8_t *to = tensor.mutableData();
  for (int64_t i = 0, e = tensor.numElements(); i < e; ++i)
    std::memcpy(to + i * elementSize, element, elementSize);
}

static void readDense(DenseElementsAttr dense, HostTensor &tensor) {
  ArrayRef<char> raw = dense.getRawData();
  if (tensor.numElements() == 0)
    return;
  if (tensor.getType() == DType::Bool) {
    // Bits, packed from the least significant one on.
    MutableArrayRef<bool> to = tensor.mutableValues<bool>();
    if (dense.isSplat())
      llvm::fill(to, raw[0] != 0);
    else
      for (size_t i = 0; i < to.size(); ++i)
        to[i] = (raw[i / 8] >> (i % 8)) & 1;
    return;
  }
  if (dense.isSplat())
    fillWith(tensor, raw.data());
  else
    std::memcpy(tensor.mutableData(), raw.data(), raw.size());
}

llvm::Expected<HostTensor> toHostTensor(ElementsAttr elements) {
  ShapedType type = elements.getShapedType();
  std::optional<DType> dtype = toDType(type.getElementType());
  if (!dtype || !type.hasStaticShape())
    return makeError(ExitCode::Unsupported,
                     "a constant has a type without values at run time");
  Shape shape(type.getShape().begin(), type.getShape().end());
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(elements)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!blob)
      return makeErrorf(ExitCode::BadPlan, "resource '{0}' has no bytes",
                        resource.getRawHandle().getKey());
    ArrayRef<char> data = blob->getData();
    auto tensor = HostTensor::fromBytes(
        *dtype, std::move(shape),
        {reinterpret_cast<const uint8_t *>(data.data()), data.size()});
    if (!tensor)
      return makeErrorf(ExitCode::BadPlan, "resource '{0}': {1}",
                        resource.getRawHandle().getKey(),
                        describeError(tensor.takeError()).message);
    return tensor;
  }
  auto dense = dyn_cast<DenseElementsAttr>(elements);
  if (!dense || isa<DenseStringElementsAttr>(elements))
    return makeError(ExitCode::Unsupported,
                     "a constant is neither dense nor a resource");
  llvm::Expected<HostTensor> tensor =
      HostTensor::allocate(*dtype, std::move(shape));
  if (tensor)
    readDense(dense, *tensor);
  return tensor;
}

static bool isUniform(const HostTensor &tensor) {
  size_t size = tensor.numBytes(), element = byteSize(tensor.getType());
  // Equal to itself moved by one element: all elements equal the first.
  return size > element && std::memcmp(tensor.data(), tensor.data() + element,
                                       size - element) == 0;
}

DenseElementsAttr toElementsAttr(const HostTensor &tensor,
                                 MLIRContext *context) {
  RankedTensorType type = toTensorType(tensor, context);
  bool uniform = isUniform(tensor);
  if (tensor.getType() == DType::Bool) {
    ArrayRef<bool> values = tensor.values<bool>();
    return DenseElementsAttr::get(type, uniform ? values.take_front() : values);
  }
  size_t size = uniform ? byteSize(tensor.getType()) : tensor.numBytes();
  return DenseElementsAttr::getFromRawBuffer(
      type, {reinterpret_cast<const char *>(tensor.data()), size});
}

} // namespace ax::interpreter
