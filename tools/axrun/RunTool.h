//===- RunTool.h - From a command line to an exit code ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_AXRUN_RUNTOOL_H
#define AX_TOOLS_AXRUN_RUNTOOL_H

#include "Options.h"

namespace ax {

/// What axrun and axrun-core do.
int runMain(int argc, char **argv, const Toolkit &toolkit);

} // namespace ax

#endif // AX_TOOLS_AXRUN_RUNTOOL_H
