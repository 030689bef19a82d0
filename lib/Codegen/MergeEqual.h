//===- MergeEqual.h - Equal operations once ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_CODEGEN_MERGEEQUAL_H
#define AX_LIB_CODEGEN_MERGEEQUAL_H

#include "ax/Local/Local.h"

namespace ax::codegen {

/// Removes what nothing reads, and does equal operations once.
void mergeEqual(LocalStageOp stage);

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_MERGEEQUAL_H
