//===- Float8Ops.h - Floats of eight bits in kernels ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// By arithmetic on integers, with the bits that Support/Float8.h gives, for
// targets without instructions for them.
//
//===----------------------------------------------------------------------===//
#ifndef AX_CODEGEN_KERNELS_FLOAT8OPS_H
#define AX_CODEGEN_KERNELS_FLOAT8OPS_H

#include "mlir/IR/Builders.h"

namespace ax::codegen {

/// The f32 that `bits`, an i8, are of f8E4M3FN or f8E5M2, which `type` is.
mlir::Value widenFloat8(mlir::OpBuilder &builder, mlir::Value bits,
                        mlir::Type type);
/// The i8 of what `x`, an f32, is rounded to: nearest, ties to even, what is
/// larger than all finite numbers to the largest.
mlir::Value narrowToFloat8(mlir::OpBuilder &builder, mlir::Value x,
                           mlir::Type type);

} // namespace ax::codegen

#endif // AX_CODEGEN_KERNELS_FLOAT8OPS_H
