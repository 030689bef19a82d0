//===- Compile.h - From an imported model to a plan -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_COMPILE_COMPILE_H
#define AX_COMPILE_COMPILE_H

#include "ax/Passes/Strategy.h"
#include "ax/Plan/Plan.h"

#include "llvm/Support/Error.h"

#include <functional>

namespace mlir {
class PassManager;
class TimingManager;
} // namespace mlir

namespace ax {

struct CompileOptions {
  /// Layout, and how the plan trains if it does.
  Strategy strategy;
  /// What cannot be split as asked is an error, not a warning.
  bool strict = false;
  /// The model was asked for in evaluation mode, which has no random numbers.
  bool evaluationMode = false;
  /// What the plan is priced for (`kMachine`); nothing: a generic processor, or
  /// what the plan has.
  std::optional<MachineRates> machine;
  /// Names of the first and the last phase to go through; empty: of all.
  llvm::StringRef first, last;
  /// Is called with "import" before the phases, and with each phase's name
  /// after it; within Shard with that of each step, too (`recipe`, ...).
  std::function<void(llvm::StringRef phase, mlir::ModuleOp module)> after;
  /// Is called with each phase's passes before they run, for what a tool's
  /// command line says of them; empty: nothing is.
  std::function<mlir::LogicalResult(mlir::PassManager &passes)> configure;
  /// What phases and passes take, if it is to be told.
  mlir::TimingManager *timing = nullptr;
};

/// Makes a plan of an imported model. Warnings and notes are diagnostics of the
/// module's context; what is wrong is the error: Usage where the strategy does
/// not fit the model, Unsupported, Internal. Of a failure the module is left
/// as it was then.
llvm::Error compile(mlir::ModuleOp module, const CompileOptions &options);

/// The phases as pipelines of axopt-opt: `ax-phase-normalize` and so on, and
/// `ax-compile`, which is all of them. What compile checks between phases is
/// left to whoever writes a pipeline.
void registerPipelines();

/// What the stages of a plan allocate and take of each rank; nothing of
/// programs that cannot run, which running them tells.
cost::Predictions predict(mlir::ModuleOp module);

} // namespace ax

#endif // AX_COMPILE_COMPILE_H
