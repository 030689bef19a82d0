//===- GpuMath.h - Functions of one number, by a GPU's units ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A GPU has units beside those that multiply and add, for a quarter of the
// elements at a time: 2^x to 2 units in the last place, 1 / x to one (PTX,
// ex2.approx and rcp.approx). A kernel that reads and writes bf16 has time for
// some 25 instructions an element; with those of FloatMath, SiLU took 40.
//
//===----------------------------------------------------------------------===//
#ifndef AX_LIB_CODEGEN_KERNELS_GPUMATH_H
#define AX_LIB_CODEGEN_KERNELS_GPUMATH_H

#include "FloatMath.h"

namespace ax::codegen {

/// Of f32.
class GpuMath final : public FloatMath {
public:
  using FloatMath::FloatMath;

  /// 2^x; 0 instead of subnormal numbers.
  mlir::Value exp2(mlir::Value x);
  mlir::Value exp(mlir::Value x) override;
  /// exp(x + low) = factor power, both normal: NaN, infinity and what is too
  /// small are in the factor.
  Exponential exponential(mlir::Value x, mlir::Value low) override;
  mlir::Value times(mlir::Value x, Exponential e) override;
  mlir::Value onePlus(Exponential e) override;
  mlir::Value quotient(mlir::Value x, mlir::Value y) override;

private:
  Exponential exponential(mlir::Value x, mlir::Value within, mlir::Value low);
  mlir::Value notTooLow(mlir::Value x);
  mlir::Value approximate(llvm::StringRef intrinsic, mlir::Value x);
};

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_KERNELS_GPUMATH_H
