//===- Programs.h - Small models as programs --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_UNIT_LAYOUTS_PROGRAMS_H
#define AX_TEST_UNIT_LAYOUTS_PROGRAMS_H

#include "ax/Dialect/Ax.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace ax::test {

struct TransformerShape {
  int64_t batch = 4, sequence = 6, heads = 4, kvHeads = 4, headSize = 4;
  int64_t hidden = 32, vocabulary = 21, layers = 2;
};

/// Fused qkv in thirds, learned positions, LayerNorm, GELU, causal attention,
/// tied logits; biases everywhere.
mlir::OwningOpRef<mlir::ModuleOp> buildGPT(mlir::MLIRContext &context,
                                           const TransformerShape &shape);
/// RMSNorm, grouped key/value heads, SwiGLU, no biases.
mlir::OwningOpRef<mlir::ModuleOp> buildLlama(mlir::MLIRContext &context,
                                             const TransformerShape &shape);
/// Convolutions, one of them by groups, a residual, pooling, a classifier.
mlir::OwningOpRef<mlir::ModuleOp> buildConvNet(mlir::MLIRContext &context,
                                               int64_t batch);

} // namespace ax::test

#endif // AX_TEST_UNIT_LAYOUTS_PROGRAMS_H
