//===- WriteKernel.h - A kernel for a target --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_CODEGEN_KERNELS_WRITEKERNEL_H
#define AX_CODEGEN_KERNELS_WRITEKERNEL_H

#include "Nests.h"

#include "ax/Runtime/Program.h"
#include "ax/Support/Target.h"
#include "mlir/IR/BuiltinOps.h"

namespace ax::codegen {

/// To whom a target's iterations are dealt out.
Dealing dealingFor(const Target &target);

/// What whoever runs a kernel has to know (rt::Kernel).
struct KernelFrame {
  int64_t scratchBytes = 0;
  rt::LaunchShape launch;
};

/// Writes the kernel `symbol` (see ax/Codegen/Kernel.h), whose loops are
/// `nests`, into `module`: nothing for a fusion without results. The fusion is
/// the one they were chosen for.
KernelFrame writeKernel(FusionOp fusion, KernelNests nests,
                        llvm::StringRef symbol, const Target &target,
                        mlir::ModuleOp module);

} // namespace ax::codegen

#endif // AX_CODEGEN_KERNELS_WRITEKERNEL_H
