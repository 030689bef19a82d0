//===- GradientRules.h - What the build finds in Rules/ ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_GRADIENTS_GRADIENTRULES_H
#define AX_LIB_GRADIENTS_GRADIENTRULES_H

#include "ax/Gradients/GradientBuilder.h"

namespace ax {

// Each file attaches the gradients of its family.
#define AX_FILE(Name) void attach##Name##Gradients(mlir::MLIRContext &context);
#include "Gradients.inc"
#undef AX_FILE

} // namespace ax

#endif // AX_LIB_GRADIENTS_GRADIENTRULES_H
