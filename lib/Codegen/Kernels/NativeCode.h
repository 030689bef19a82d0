//===- NativeCode.h - From scalar loops to an object file -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_CODEGEN_KERNELS_NATIVECODE_H
#define AX_CODEGEN_KERNELS_NATIVECODE_H

#include "ax/Support/CpuTarget.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

#include <string>

namespace llvm {
class Module;
} // namespace llvm

namespace ax::codegen {

/// `module`: as `translate` takes it (LlvmCode.h); consumed.
llvm::Expected<llvm::SmallVector<char, 0>>
generateObject(mlir::ModuleOp module, const CpuTarget &target);
/// The same of what that gives.
llvm::Expected<llvm::SmallVector<char, 0>>
generateObject(llvm::Module &code, const CpuTarget &target);

/// rt::Kernel::format of what `generateObject` gives.
std::string objectFormat(const CpuTarget &target);

} // namespace ax::codegen

#endif // AX_CODEGEN_KERNELS_NATIVECODE_H
