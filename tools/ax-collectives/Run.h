//===- Run.h - All ranks of this process ------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_COLLECTIVES_RUN_H
#define AX_TOOLS_COLLECTIVES_RUN_H

#include "Options.h"

namespace ax {

/// Measures as the rank of a process that mpirun has started.
llvm::Error runProcess(CollectivesOptions options);
/// Measures as ranks that are threads.
llvm::Error runThreads(CollectivesOptions options);

} // namespace ax

#endif // AX_TOOLS_COLLECTIVES_RUN_H
