//===- HostFunctions.cpp - C++ that kernels call --------------------------===//

#include "HostFunctions.h"

#include "mlir/IR/BuiltinTypes.h"

namespace ax::codegen {

DType hostTypeOf(mlir::Type type) {
  if (type.isF32())
    return DType::F32;
  if (type.isF64())
    return DType::F64;
  if (type.isF16())
    return DType::F16;
  if (type.isBF16())
    return DType::BF16;
  bool isUnsigned = type.isUnsignedInteger();
  switch (type.getIntOrFloatBitWidth()) {
  case 1:
    return DType::Bool;
  case 8:
    return isUnsigned ? DType::U8 : DType::I8;
  case 16:
    return isUnsigned ? DType::U16 : DType::I16;
  case 32:
    return isUnsigned ? DType::U32 : DType::I32;
  default:
    return isUnsigned ? DType::U64 : DType::I64;
  }
}

} // namespace ax::codegen
