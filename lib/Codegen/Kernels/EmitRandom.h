//===- EmitRandom.h - axl.random in kernels ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_CODEGEN_KERNELS_EMITRANDOM_H
#define AX_CODEGEN_KERNELS_EMITRANDOM_H

#include "mlir/IR/Builders.h"

namespace ax::codegen {

/// An f32, from i64 scalars.
mlir::Value emitRandom(mlir::OpBuilder &builder, mlir::Value index,
                       mlir::Value seed, mlir::Value step, int64_t id);

} // namespace ax::codegen

#endif // AX_CODEGEN_KERNELS_EMITRANDOM_H
