//===- PredictTime.h - How long commands take -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_CODEGEN_PREDICTTIME_H
#define AX_LIB_CODEGEN_PREDICTTIME_H

#include "ax/Cost/OpCost.h"
#include "ax/Runtime/Program.h"

namespace ax::codegen {

/// Returns the seconds that a rank of the stage takes to do the list once, for
/// one micro-batch of a step that is not the first. Waiting for other stages is
/// not in it.
double predictSeconds(const rt::CommandList &list,
                      const rt::StageProgram &stage, const rt::Program &program,
                      const cost::Machine &machine);

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_PREDICTTIME_H
