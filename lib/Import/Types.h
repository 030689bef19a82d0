//===- Types.h - ONNX tensors as ours ---------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_IMPORT_TYPES_H
#define AX_LIB_IMPORT_TYPES_H

#include "Weights.h"

#include "ax/Support/HostTensor.h"

#include <onnx/onnx_pb.h>

#include <optional>
#include <string>

namespace ax::import {

/// Element type for a TensorProto::DataType; nothing for those that we lack.
std::optional<DType> fromOnnxType(int32_t onnxType);
int32_t toOnnxType(DType type);
/// Which numbers of four bits it has, if any. They have more bits once they are
/// read: where that would make a difference is refused, see FourBits.h.
std::optional<FourBits::Kind> fourBitKind(int32_t onnxType);
/// Their type once they are read: I8, U8 or F8E4M3FN.
DType typeOf(FourBits::Kind kind);
/// `FLOAT8E5M2`, or the number when ONNX knows none.
std::string onnxTypeName(int32_t onnxType);

/// Elements of a tensor that a model names; an error when there cannot be so
/// many, or are more than we take.
llvm::Expected<int64_t> countElements(const std::string &name,
                                      llvm::ArrayRef<int64_t> shape,
                                      DType type);

/// Contents of a tensor that holds its own data; an error when it is
/// malformed, external, or of a type that we lack.
llvm::Expected<HostTensor> toHostTensor(const onnx::TensorProto &proto);
/// Numbers of typeOf(fourBits.kind) from the bytes in which `fourBits` lie.
llvm::Expected<HostTensor> unpack(llvm::ArrayRef<uint8_t> bytes,
                                  const FourBits &fourBits);
onnx::TensorProto toTensorProto(const HostTensor &tensor,
                                const std::string &name);

} // namespace ax::import

#endif // AX_LIB_IMPORT_TYPES_H
