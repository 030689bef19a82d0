//===- Constants.h - A plan's constants in a file beside it -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_PLAN_CONSTANTS_H
#define AX_LIB_PLAN_CONSTANTS_H

#include "ax/Support/AtomicFile.h"

#include "mlir/IR/BuiltinOps.h"

namespace ax::plan {

/// Puts the module's large constants into a file at `path`, which is still to
/// be committed; none when there are none. The module's text then refers to it.
llvm::Expected<std::optional<AtomicFile>>
storeConstants(mlir::ModuleOp module, const std::string &path);

} // namespace ax::plan

#endif // AX_LIB_PLAN_CONSTANTS_H
