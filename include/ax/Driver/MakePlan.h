//===- MakePlan.h - A model as a plan, and a plan's kernels -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_DRIVER_MAKEPLAN_H
#define AX_DRIVER_MAKEPLAN_H

#include "ax/Codegen/Codegen.h"
#include "ax/Compile/Compile.h"
#include "ax/Driver/Diagnostics.h"
#include "ax/Driver/ModelFlags.h"

namespace ax::driver {

/// Returns what a plan is priced for: what `--machine` says, or the GPU that
/// kernels are compiled for; nothing: a generic processor.
std::optional<MachineRates> machineOf(const ModelOptions &options);

/// Told of a search, before the plan is made of its first candidate, which it
/// may put there; an error ends it.
using OnFound = std::function<llvm::Error(search::Result &)>;

/// Imports a model, searches for a strategy if that is asked for, and compiles
/// it; the plan is not yet verified. `how` has the hooks. A model that was
/// imported has its warnings told, whether it compiles or not; an error of
/// compiling begins with the model's path.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
makePlan(const std::string &model, const ModelOptions &options,
         Diagnostics &diagnostics, const Tell &warn, CompileOptions how = {},
         const OnFound &onFound = {});

/// Compiles the kernels of a verified plan for `options.targets`, and writes
/// all that a run needs to `output`. `input` is the model or the plan that it
/// was made of, by which files of its states are found. `how` has the hooks.
llvm::Error writeCompiled(mlir::ModuleOp module, const std::string &input,
                          const std::string &output,
                          const ModelOptions &options, const Tell &warn,
                          codegen::Options how = {});

} // namespace ax::driver

#endif // AX_DRIVER_MAKEPLAN_H
