//===- CompileModule.h - Programs of a plan in memory -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_SESSION_COMPILEMODULE_H
#define AX_SESSION_COMPILEMODULE_H

#include "ax/Session/PlanSource.h"

#include "mlir/IR/BuiltinOps.h"

namespace ax {

/// Compiles a verified plan; `path` is what errors name. Of the library
/// AxPlanCompiler.
llvm::Expected<PlanSource> compileModule(mlir::ModuleOp module,
                                         const std::string &path,
                                         const SessionOptions &options,
                                         ChoosePrograms choose,
                                         const Target &target);

} // namespace ax

#endif // AX_SESSION_COMPILEMODULE_H
