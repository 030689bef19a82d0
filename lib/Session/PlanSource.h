//===- PlanSource.h - Programs of a plan file -------------------*- C++ -*-===//
#ifndef AX_LIB_SESSION_PLANSOURCE_H
#define AX_LIB_SESSION_PLANSOURCE_H

#include "ax/Runtime/CompiledPlan.h"
#include "ax/Session/Session.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace ax {

struct PlanSource {
  rt::CompiledPlan plan;
  /// That it was read from.
  std::vector<std::string> files;
};

/// From the names of a plan's programs, in its order, those that a run needs; a
/// Usage error where they are not there.
using ChoosePrograms =
    llvm::function_ref<llvm::Expected<std::vector<llvm::StringRef>>(
        llvm::ArrayRef<llvm::StringRef>)>;

/// Reads, verifies and compiles a plan's text: what a program without compiler
/// (axrun-core) refuses.
llvm::Expected<PlanSource> compileText(const std::string &path,
                                       const SessionOptions &options,
                                       ChoosePrograms choose);

} // namespace ax

#endif // AX_LIB_SESSION_PLANSOURCE_H
