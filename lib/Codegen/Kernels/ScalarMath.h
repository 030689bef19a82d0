//===- ScalarMath.h - Functions of one floating-point number ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In f32: branch-free arithmetic that loops of it vectorise, or the C library's
// function; within 4 ulp, on a GPU 8, NaN, infinities, signs of zeros and
// subnormal numbers as in C. In f64: the C library.
//
//===----------------------------------------------------------------------===//
#ifndef AX_CODEGEN_KERNELS_SCALARMATH_H
#define AX_CODEGEN_KERNELS_SCALARMATH_H

#include "mlir/IR/Builders.h"

namespace ax {
enum class UnaryKind : uint32_t;
} // namespace ax

namespace ax::codegen {

/// What works out scalars. A GPU has instructions for bf16, which keep
/// subnormal numbers, and for powers of two and reciprocals, exact to a unit or
/// two in the last place (GpuMath.h). Few processors have any, and theirs lose
/// subnormal numbers of bf16.
enum class ScalarUnit { Processor, Gpu };

/// A form of the function that is faster or more exact than its definition
/// (ax/Dialect/UnaryFunctions.h) in the type of `x`; null if there is none.
mlir::Value emitBetterForm(mlir::OpBuilder &builder, ScalarUnit unit,
                           ax::UnaryKind kind, mlir::Value x);
/// A call of the C library's function `name`, in f32 of the one with an f
/// behind its name, which has no side effect we see.
mlir::Value emitLibraryCall(mlir::OpBuilder &builder, llvm::StringRef name,
                            mlir::ValueRange operands);
/// exp(x) of an f32 or f64 x <= 0, where what is subnormal may become 0.
mlir::Value emitExpFlushed(mlir::OpBuilder &builder, mlir::Value x);
/// pow, or a few multiplications when the exponent is a suitable constant.
mlir::Value emitPow(mlir::OpBuilder &builder, mlir::Value x, mlir::Value y);

} // namespace ax::codegen

#endif // AX_CODEGEN_KERNELS_SCALARMATH_H
