//===- AttentionValues.h - Attention and its gradient alike -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_DIALECT_ATTENTIONVALUES_H
#define AX_DIALECT_ATTENTIONVALUES_H

#include "ax/Dialect/Ax.h"

#include <optional>

namespace ax {

/// What `ax.attention` and `ax.attention_gradient` have in common.
struct AttentionValues {
  template <typename Op>
  explicit AttentionValues(Op op)
      : q(op.getQ()), k(op.getK()), v(op.getV()), mask(op.getMask()),
        scale(op.getScale().convertToDouble()), causal(op.getCausal()),
        emptyRowsZero(op.getEmptyRowsZero()),
        emptyRowsMean(op.getEmptyRowsMean()), window(op.getWindow()) {
    if (auto cap = op.getSoftcap())
      softcap = cap->convertToDouble();
  }

  mlir::Value q, k, v;
  /// Null where there is none.
  mlir::Value mask;
  double scale;
  std::optional<double> softcap;
  bool causal, emptyRowsZero, emptyRowsMean;
  std::optional<int64_t> window;
};

/// Whether attention of `q` to `k` can have the mask: of a size that broadcasts
/// to [batch, heads, S, T], and i1, f32 or the type of `q`, or i64 and the same
/// for all queries. If not, says so.
mlir::LogicalResult checkAttentionMask(std::optional<mlir::Location> location,
                                       mlir::Value q, mlir::Value k,
                                       mlir::Value mask);

} // namespace ax

#endif // AX_DIALECT_ATTENTIONVALUES_H
