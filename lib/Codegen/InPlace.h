//===- InPlace.h - Results that replace states where they are ---*- C++ -*-===//
#ifndef AX_LIB_CODEGEN_INPLACE_H
#define AX_LIB_CODEGEN_INPLACE_H

#include "ax/Codegen/Kernel.h"
#include "ax/Codegen/Localize.h"

namespace ax::codegen {

/// Marks, in a fused stage, kernels that may write the new value of a state, or
/// of a sum over micro-batches, over the old one (kInPlace): nothing reads the
/// old one later, and the kernel reads of it only the element that it is about
/// to write.
void markInPlace(LocalStage &stage);

/// The operand in whose memory the result is made; null when it has its own.
mlir::Value inPlaceOperand(mlir::OpResult result);

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_INPLACE_H
