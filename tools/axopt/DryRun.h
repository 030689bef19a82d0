//===- DryRun.h - What the best layouts really take -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_AXOPT_DRYRUN_H
#define AX_TOOLS_AXOPT_DRYRUN_H

#include "Options.h"

namespace ax {

/// Runs plans of the best `count` layouts that fit here, by the axrun beside
/// this program, on inputs and weights that are made up, in three rounds of
/// which the fastest counts, and puts these candidates in the order of what
/// they took. Errors of making and of running them.
llvm::Error measureBest(search::Result &found, int64_t count,
                        const Options &options);

} // namespace ax

#endif // AX_TOOLS_AXOPT_DRYRUN_H
