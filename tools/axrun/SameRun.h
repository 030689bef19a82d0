//===- SameRun.h - Whether all processes run the same -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_AXRUN_SAMERUN_H
#define AX_TOOLS_AXRUN_SAMERUN_H

#include "Options.h"

namespace ax {

/// Usage errors in all processes where the plans, the flags or the files of one
/// are others than process 0's: of files sizes are compared, and bytes here and
/// there. Of the command line alone, and of the plan that it names.
llvm::Error checkSameCommand(const RunOptions &options);
/// Of what the plan names, too, when it is compiled.
llvm::Error checkSameFiles(const RunOptions &options, const Session &session);

} // namespace ax

#endif // AX_TOOLS_AXRUN_SAMERUN_H
