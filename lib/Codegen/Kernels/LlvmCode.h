//===- LlvmCode.h - Steps from scalar loops to code -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_CODEGEN_KERNELS_LLVMCODE_H
#define AX_CODEGEN_KERNELS_LLVMCODE_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/CodeGen.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"

#include <memory>
#include <string>

namespace ax::codegen {

/// The attribute of a loop with what LLVM is told of it.
inline constexpr llvm::StringLiteral kLoop = "llvm.loop_annotation";

/// Loads what `translate` needs into the context. Once, before threads.
void loadLoweringDialects(mlir::MLIRContext &context);

/// `module`: llvm.func of scf, arith, math, nvvm and llvm; consumed.
llvm::Expected<std::unique_ptr<llvm::Module>>
translate(mlir::ModuleOp module, llvm::LLVMContext &context);

/// Whose code generator has been initialised.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
makeMachine(const std::string &triple, const std::string &cpu,
            const std::string &features);

/// Says in `code` what it is for, and lets passes go over it.
llvm::Error optimize(llvm::Module &code, llvm::TargetMachine &machine,
                     llvm::StringRef pipeline, unsigned vectorBits = 0);

llvm::Expected<llvm::SmallVector<char, 0>> emit(llvm::Module &code,
                                                llvm::TargetMachine &machine,
                                                llvm::CodeGenFileType type);

} // namespace ax::codegen

#endif // AX_CODEGEN_KERNELS_LLVMCODE_H
