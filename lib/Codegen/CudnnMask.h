//===- CudnnMask.h - Which keys attention sees, for cuDNN -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_CODEGEN_CUDNNMASK_H
#define AX_LIB_CODEGEN_CUDNNMASK_H

#include "ax/Dialect/AttentionValues.h"
#include "ax/Gradients/TensorBuilder.h"

namespace ax::codegen {

/// What hides keys from queries, as cuDNN takes it.
struct CudnnMask {
  /// Added to scores, [batch or 1, heads or 1, S or 1, T or 1], of bf16 or f32;
  /// null where nothing is. Of each query that attends to a key the largest is
  /// 0, or known to be small, and none is less than -2^30: that hides a key,
  /// whereas -inf would make a query NaN whose first keys are hidden, and
  /// numbers that are much larger leave nothing of what is added to them.
  mlir::Value added;
  /// Whether a query attends to nothing, [batch or 1, heads or 1, S or 1, 1];
  /// null where each is known to attend to something. It has 0 added, so that
  /// what cuDNN gives for it is a number, which is to be replaced.
  mlir::Value isEmpty;
  /// Whether a query does not see keys behind its own place. Only with as many
  /// keys as queries, else it is part of what is added.
  bool causal = false;
};

/// Equal masks give operations that are equal. `productType`: f16 or bf16.
CudnnMask makeCudnnMask(const AttentionValues &values, mlir::Type productType,
                        TensorBuilder &t);

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_CUDNNMASK_H
