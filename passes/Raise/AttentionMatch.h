//===- AttentionMatch.h - softmax(q k^T) v in a program ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PASSES_RAISE_ATTENTIONMATCH_H
#define AX_PASSES_RAISE_ATTENTIONMATCH_H

#include "../Match.h"

namespace ax {

/// An operand with the places of its dimensions: those that are batch or heads
/// in the order of the scores, rows (positions), columns (features).
struct AttentionOperand {
  mlir::Value value;
  llvm::SmallVector<int64_t> leading;
  int64_t rows;
  int64_t columns;
};

/// What happens to the scores on their way to the softmax.
struct MaskStep {
  enum Kind { Add, Subtract, Select, ClampBelow };
  Kind kind;
  /// Addend, or condition (of a type where 0 is false); null for ClampBelow.
  mlir::Value tensor;
  /// Select: scores stay where the condition is this, and are `number`
  /// elsewhere. ClampBelow: the bound.
  bool staysWhere = true;
  double number = 0;
  /// Shape of the scores at this step: leading..., S, T.
  llvm::SmallVector<int64_t> shape;
  /// The number by which the step's result is multiplied further on.
  double factor = 1;
};

struct AttentionMatch {
  AttentionOperand q, k, v;
  /// The product q k^T, and what becomes of it.
  mlir::Operation *scores = nullptr, *softmax = nullptr;
  /// How many query heads share a key/value head that is not repeated for them:
  /// the last of the leading dimensions of q and of the scores, but not of k
  /// and v.
  std::optional<int64_t> group;
  /// Rows of q and of the product q k^T that the program takes apart only for
  /// the scores: the sizes of both parts.
  llvm::SmallVector<int64_t> rowParts;
  /// The scores are [leading..., S, group, T] where they are masked.
  bool groupIsMinor = false;
  /// Shape of the product q k^T.
  llvm::SmallVector<int64_t> scoresShape;
  /// Every shape that the scores have on the way, from the last to the first.
  llvm::SmallVector<llvm::SmallVector<int64_t>> shapes;
  double scale = 1;
  /// A factor of the scores that differs between heads or rows; it broadcasts
  /// to `rowScaleShape`: leading..., S, 1.
  mlir::Value rowScale;
  llvm::SmallVector<int64_t> rowScaleShape;
  std::optional<double> softcap;
  /// The masks, from the scores outwards.
  llvm::SmallVector<MaskStep> masks;
  bool emptyRowsZero = false;
  /// The order in which the product with v has the leading dimensions.
  llvm::SmallVector<int64_t> resultOrder;
};

/// The attention whose last product `output` is.
std::optional<AttentionMatch> matchAttention(DotOp output);

} // namespace ax

#endif // AX_PASSES_RAISE_ATTENTIONMATCH_H
