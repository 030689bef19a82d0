//===- PlanRanks.h - How many ranks a plan is for ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_AXLAUNCH_PLANRANKS_H
#define AX_TOOLS_AXLAUNCH_PLANRANKS_H

#include "llvm/Support/Error.h"

#include <string>

namespace ax {

/// Returns it for a plan or a compiled plan. Of a plan's text only its mesh is
/// read. An InputOutput or a BadPlan error names the file.
llvm::Expected<int64_t> readPlanRanks(const std::string &path);

} // namespace ax

#endif // AX_TOOLS_AXLAUNCH_PLANRANKS_H
