//===- UnaryFunctions.h - Functions of one element in kernels ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_CODEGEN_KERNELS_UNARYFUNCTIONS_H
#define AX_LIB_CODEGEN_KERNELS_UNARYFUNCTIONS_H

#include "ScalarMath.h"

#include "ax/Dialect/AxEnums.h"
#include "mlir/IR/Builders.h"

namespace ax::codegen {

/// Emits a function by its better form in this type, if there is one
/// (ScalarMath.h), else by its definition. `type` is the operand's element type
/// in ax, none narrower than f32 if it is a float.
mlir::Value emitUnaryFunction(mlir::OpBuilder &builder, ScalarUnit unit,
                              UnaryKind kind, mlir::Value x, mlir::Type type);

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_KERNELS_UNARYFUNCTIONS_H
