//===- Types.h - ONNX tensors as ours ---------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_IMPORT_TYPES_H
#define AX_LIB_IMPORT_TYPES_H

#include "ax/Support/HostTensor.h"

#include <onnx/onnx_pb.h>

#include <optional>
#include <string>

namespace ax::import {

/// Element type for a TensorProto::DataType; nothing for those that we lack.
std::optional<DType> fromOnnxType(int32_t onnxType);
int32_t toOnnxType(DType type);
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
onnx::TensorProto toTensorProto(const HostTensor &tensor,
                                const std::string &name);

} // namespace ax::import

#endif // AX_LIB_IMPORT_TYPES_H
