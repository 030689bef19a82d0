//===- NarrowType.h - What a precision rounds to ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PASSES_TRAIN_NARROWTYPE_H
#define AX_PASSES_TRAIN_NARROWTYPE_H

#include "ax/Passes/Training.h"

#include "mlir/IR/Builders.h"

namespace ax {

/// The type of products' factors: f16 of fp16, bf16 of bf16, and of fp8 for
/// what is not of eight bits. `precision` is not fp32.
inline mlir::FloatType narrowType(const Precision &precision,
                                  mlir::MLIRContext *context) {
  mlir::Builder types(context);
  if (precision.type == Precision::FP16)
    return types.getF16Type();
  return types.getBF16Type();
}

} // namespace ax

#endif // AX_PASSES_TRAIN_NARROWTYPE_H
