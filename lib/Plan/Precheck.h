//===- Precheck.h - What is refused before anybody reads a plan -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_PLAN_PRECHECK_H
#define AX_LIB_PLAN_PRECHECK_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

namespace ax::plan {

/// Text on which the recursive parser would run out of stack.
llvm::Error precheckText(llvm::StringRef text, llvm::StringRef name);

/// Sizes with which later arithmetic would overflow, and a module that is not
/// one plan with a sound mesh. Reports errors; runs on unverified IR.
mlir::LogicalResult precheckModule(mlir::ModuleOp module);

} // namespace ax::plan

#endif // AX_LIB_PLAN_PRECHECK_H
