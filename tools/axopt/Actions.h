//===- Actions.h - What axopt does ------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_AXOPT_ACTIONS_H
#define AX_TOOLS_AXOPT_ACTIONS_H

#include "Options.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"

namespace ax {

/// Fails with Usage where something that is written would replace what is read,
/// or something else that is written. `inputs` are the model or plan and what
/// it is made of; `constants` are those of the plan.
llvm::Error checkOutputs(const Options &options,
                         llvm::ArrayRef<std::string> inputs,
                         const std::string &constants = "");

/// Makes or reads the plan, and verifies, summarises, explains and writes it.
llvm::Error makePlan(const Options &options, mlir::MLIRContext &context);

/// Tells of what axopt can do without, on standard error.
void warn(const std::string &text);

/// Writes the model with other weights.
llvm::Error exportModel(const Options &options);

/// Prints what is in the model.
llvm::Error inspectModel(const Options &options, mlir::MLIRContext &context);

} // namespace ax

#endif // AX_TOOLS_AXOPT_ACTIONS_H
