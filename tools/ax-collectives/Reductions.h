//===- Reductions.h - Kernels that reduce -----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_COLLECTIVES_REDUCTIONS_H
#define AX_TOOLS_COLLECTIVES_REDUCTIONS_H

#include "Options.h"

namespace ax {

/// Returns the kernels by which `numRanks` ranks of one card add up f32 there,
/// as plans have them: made for the cards, or for what the environment's
/// AXRUN_TARGET says. None where others do that.
llvm::Expected<Reductions> compileReductions(int32_t numRanks,
                                             const rt::BackendOptions &options);

} // namespace ax

#endif // AX_TOOLS_COLLECTIVES_REDUCTIONS_H
