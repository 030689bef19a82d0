//===- AttentionMatch.h - softmax(q k^T) v in a program ---------*- C++ -*-===//
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
  /// Addend, or condition; null for ClampBelow.
  mlir::Value tensor;
  /// Select: scores stay where the condition is this, and are `number`
  /// elsewhere. ClampBelow: the bound.
  bool staysWhere = true;
  double number = 0;
  /// Shape of the scores at this step: leading..., S, T.
  llvm::SmallVector<int64_t> shape;
  /// By what the step's result is multiplied further on.
  double factor = 1;
};

struct AttentionMatch {
  AttentionOperand q, k, v;
  /// Shape of the product q k^T: leading..., S, T.
  llvm::SmallVector<int64_t> scoresShape;
  /// Every shape that the scores have on the way, from the last to the first.
  llvm::SmallVector<llvm::SmallVector<int64_t>> shapes;
  double scale = 1;
  std::optional<double> softcap;
  /// From the scores outwards.
  llvm::SmallVector<MaskStep> masks;
  bool emptyRowsZero = false;
  /// The order in which the product with v has the leading dimensions.
  llvm::SmallVector<int64_t> resultOrder;
};

/// The attention whose last product `output` is.
std::optional<AttentionMatch> matchAttention(DotOp output);

} // namespace ax

#endif // AX_PASSES_RAISE_ATTENTIONMATCH_H
