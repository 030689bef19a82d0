//===- ScalarMath.h - Functions of one floating-point number ----*- C++ -*-===//
//
// In f32: branch-free arithmetic that loops of it vectorise, within a few ulp,
// NaN and infinities as in C. In f64: the C library.
//
//===----------------------------------------------------------------------===//
#ifndef AX_CODEGEN_KERNELS_SCALARMATH_H
#define AX_CODEGEN_KERNELS_SCALARMATH_H

#include "mlir/IR/Builders.h"

namespace ax {
enum class UnaryKind : uint32_t;
} // namespace ax

namespace ax::codegen {

/// `x` is f32 or f64; a function of the kinds that are of floats only.
mlir::Value emitFloatFunction(mlir::OpBuilder &builder, ax::UnaryKind kind,
                              mlir::Value x);
/// pow, or a few multiplications when the exponent is a suitable constant.
mlir::Value emitPow(mlir::OpBuilder &builder, mlir::Value x, mlir::Value y);

} // namespace ax::codegen

#endif // AX_CODEGEN_KERNELS_SCALARMATH_H
