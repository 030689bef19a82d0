//===- AttentionParts.h - Attention from other operations -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Query heads are taken apart into [kv heads, group], so that keys and values
// are shared by broadcasting.
//
//===----------------------------------------------------------------------===//
#ifndef AX_GRADIENTS_ATTENTIONPARTS_H
#define AX_GRADIENTS_ATTENTIONPARTS_H

#include "ax/Gradients/TensorBuilder.h"

namespace ax {

class AttentionParts {
public:
  AttentionParts(AttentionOp op, TensorBuilder &t)
      : op(op), t(t), heads(shapeOf(op.getQ())[1]),
        queries(shapeOf(op.getQ())[2]), kvHeads(shapeOf(op.getK())[1]),
        keys(shapeOf(op.getK())[2]) {}

  /// [batch, heads, ...] as [batch, kv heads, group, ...].
  mlir::Value byGroups(mlir::Value value);
  mlir::Value scaledQueries();
  /// Multiplies x and y for every kv head of every sample.
  mlir::Value dot(mlir::Value x, mlir::Value y, llvm::ArrayRef<int64_t> xDims,
                  llvm::ArrayRef<int64_t> yDims);
  llvm::SmallVector<int64_t> maskShape();
  /// [batch, kv heads, group, queries, keys].
  mlir::Value probabilities(mlir::Value scaledQueries);
  /// tanh of the scores over the cap, when there is one.
  mlir::Value capped;

private:
  AttentionOp op;
  TensorBuilder &t;
  int64_t heads, queries, kvHeads, keys;
};

} // namespace ax

#endif // AX_GRADIENTS_ATTENTIONPARTS_H
