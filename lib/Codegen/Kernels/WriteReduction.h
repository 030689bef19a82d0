//===- WriteReduction.h - What ranks hold, made one, on a GPU ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_CODEGEN_KERNELS_WRITEREDUCTION_H
#define AX_CODEGEN_KERNELS_WRITEREDUCTION_H

#include "ax/Codegen/Kernel.h"

#include "mlir/IR/BuiltinOps.h"

namespace ax::codegen {

/// Writes the kernel `symbol` for GPUs, as rt::reductionKernel says, into
/// `module`, which is empty: every thread of a grid does each so-manieth
/// element, which it reads from all sources before it writes it. Returns the
/// most threads that are of use.
rt::LaunchShape writeReduction(const Reduction &reduction,
                               llvm::StringRef symbol, mlir::ModuleOp module);

} // namespace ax::codegen

#endif // AX_CODEGEN_KERNELS_WRITEREDUCTION_H
