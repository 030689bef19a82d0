//===- AttentionParts.h - Attention from other operations -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Query heads are taken apart into [kv heads, group], so that keys and values
// are shared by broadcasting.
//
//===----------------------------------------------------------------------===//
#ifndef AX_GRADIENTS_ATTENTIONPARTS_H
#define AX_GRADIENTS_ATTENTIONPARTS_H

#include "ax/Dialect/AttentionValues.h"
#include "ax/Gradients/TensorBuilder.h"

namespace ax {

/// Which keys queries see by causality and a window: i1, [1.., queries, keys],
/// of `rank` dimensions.
mlir::Value seenByPlaces(const AttentionValues &values, TensorBuilder &t,
                         int64_t rank);

class AttentionParts {
public:
  /// `productType`: what factors of products are rounded to; all else is f32
  /// then. Null: all is of the type of q, and has gradients.
  AttentionParts(const AttentionValues &values, TensorBuilder &t,
                 mlir::Type productType = {})
      : in(values), t(t), productType(productType), heads(shapeOf(in.q)[1]),
        queries(shapeOf(in.q)[2]), kvHeads(shapeOf(in.k)[1]),
        keys(shapeOf(in.k)[2]) {}

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

  const AttentionValues in;

private:
  TensorBuilder &t;
  mlir::Type productType;
  int64_t heads, queries, kvHeads, keys;
};

/// The gradient of attention. The scores are computed again, not kept.
class AttentionGradientParts {
public:
  /// `result` is what attention gave, and `gradient` that of it.
  AttentionGradientParts(const AttentionValues &values, mlir::Value result,
                         mlir::Value gradient, TensorBuilder &t,
                         mlir::Type productType = {});
  mlir::Value ofQ();
  mlir::Value ofK();
  mlir::Value ofV();
  mlir::Value ofMask();

private:
  /// That of the scores as they are multiplied, before any cap.
  mlir::Value ofProducts();

  AttentionParts parts;
  TensorBuilder &t;
  mlir::Value dy, q, p;
  /// Of the scores as the softmax takes them, and before any cap.
  mlir::Value ds, products;
};

} // namespace ax

#endif // AX_GRADIENTS_ATTENTIONPARTS_H
