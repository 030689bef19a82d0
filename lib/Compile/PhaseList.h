//===- PhaseList.h - The phases in their order ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_COMPILE_PHASELIST_H
#define AX_LIB_COMPILE_PHASELIST_H

#include "ax/Compile/Compile.h"
#include "ax/Support/Error.h"

#include "mlir/IR/BuiltinOps.h"

#include <vector>

namespace ax {

struct Phase {
  llvm::StringRef name;
  /// What a failure is: the strategy does not fit, or a fault of ours.
  ExitCode code;
  std::function<void(mlir::OpPassManager &)> add;
  /// What is to hold after it; nothing where it is empty.
  std::function<llvm::Error(mlir::ModuleOp)> check = nullptr;
  /// Passes that may be looked behind, without their `ax-`.
  std::vector<llvm::StringRef> steps = {};
};

/// The phases from `options.first` to `options.last`, in their order. They
/// refer to `options` until they are added; what they add does not.
std::vector<Phase> phasesFor(const CompileOptions &options);

} // namespace ax

#endif // AX_LIB_COMPILE_PHASELIST_H
