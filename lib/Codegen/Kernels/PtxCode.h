//===- PtxCode.h - From what a thread does to PTX ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_CODEGEN_KERNELS_PTXCODE_H
#define AX_CODEGEN_KERNELS_PTXCODE_H

#include "ax/Support/Target.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

namespace ax::codegen {

/// Makes an image of kernelFormat::ptx (ax/Runtime/Program.h), of a kernel and
/// what it calls. `module`: as `translate` takes it (LlvmCode.h); consumed.
llvm::Expected<llvm::SmallVector<char, 0>> generatePtx(mlir::ModuleOp module,
                                                       const GpuTarget &target);

} // namespace ax::codegen

#endif // AX_CODEGEN_KERNELS_PTXCODE_H
