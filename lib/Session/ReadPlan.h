//===- ReadPlan.h - Programs of a plan file ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_SESSION_READPLAN_H
#define AX_LIB_SESSION_READPLAN_H

#include "ax/Session/PlanSource.h"

namespace ax {

/// Those of a plan as text, by the compiler of `options`.
llvm::Expected<PlanSource> readPlanText(const std::string &path,
                                        const SessionOptions &options,
                                        ChoosePrograms choose,
                                        FindTarget findTarget);

/// Of all targets that a compiled plan has programs for, those for the one that
/// the devices run best.
llvm::Expected<PlanSource> readPlanCode(const std::string &path,
                                        const SessionOptions &options,
                                        ChoosePrograms choose,
                                        FindTarget findTarget);

} // namespace ax

#endif // AX_LIB_SESSION_READPLAN_H
