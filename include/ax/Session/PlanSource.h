//===- PlanSource.h - Programs of a plan file -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_SESSION_PLANSOURCE_H
#define AX_SESSION_PLANSOURCE_H

#include "ax/Runtime/CompiledPlan.h"
#include "ax/Support/Target.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <functional>

namespace ax {

struct SessionOptions;

struct PlanSource {
  /// For one target.
  rt::CompiledPlan plan;
  /// That it was read from.
  std::vector<std::string> files;
  /// What becomes of attention that cuDNN would do if it were there; empty
  /// where there is none, or it is.
  std::string withoutCudnn = {};
};

/// Returns those programs that a run needs, of the names of a plan's programs
/// in its order; a Usage error where they are not there.
using ChoosePrograms =
    llvm::function_ref<llvm::Expected<std::vector<llvm::StringRef>>(
        llvm::ArrayRef<llvm::StringRef>)>;

/// Returns what code is made for where a plan has so many ranks; a Usage error
/// where so many cannot run here, or the devices that they are to use cannot.
using FindTarget = llvm::function_ref<llvm::Expected<Target>(int64_t numRanks)>;

/// Makes programs of a plan that is not compiled.
using PlanCompiler = std::function<llvm::Expected<PlanSource>(
    const std::string &path, const SessionOptions &options,
    ChoosePrograms choose, FindTarget findTarget)>;

/// Reads, verifies and compiles it; of the library AxPlanCompiler.
llvm::Expected<PlanSource> compileText(const std::string &path,
                                       const SessionOptions &options,
                                       ChoosePrograms choose,
                                       FindTarget findTarget);

} // namespace ax

#endif // AX_SESSION_PLANSOURCE_H
