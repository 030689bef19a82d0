//===- LibraryMath.h - The C library's functions, as code -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_CODEGEN_KERNELS_LIBRARYMATH_H
#define AX_CODEGEN_KERNELS_LIBRARYMATH_H

#include "mlir/IR/BuiltinOps.h"

namespace ax::codegen {

/// Writes arithmetic in f64 where `module` calls a function of the mathematical
/// library (emitLibraryCall) or takes a remainder, for targets that have no
/// library. Of f32, results are within 1 ulp; of f64, within 1e-14, but for pow
/// and erfc (within 1e-12), and sin, cos and tan beyond 2^30, which have fewer
/// digits. Special values are as in C. Calls of functions that it does not know
/// stay.
void expandLibraryCalls(mlir::ModuleOp module);

} // namespace ax::codegen

#endif // AX_CODEGEN_KERNELS_LIBRARYMATH_H
