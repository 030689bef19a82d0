//===- CausalKeyMask.h - Masks of causality and padding ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PASSES_RAISE_CAUSALKEYMASK_H
#define AX_PASSES_RAISE_CAUSALKEYMASK_H

#include "MaskRegions.h"

#include "mlir/IR/Builders.h"

namespace ax {

/// A mask of scores [.., queries, keys] that hides what is behind each query's
/// place, and beside that is the same for all queries.
struct CausalKeyMask {
  /// What is left of it, [batch or 1, heads or 1, 1, keys]: i1 where it only
  /// hides keys; null: nothing.
  mlir::Value ofKeys;
  /// What is hidden has a number to which a score adds nothing: a query that
  /// sees no key attends to all of them alike.
  bool isMeanWhereEmpty = false;
};

/// Finds them where they are made element by element of a region that is known
/// (MaskRegions) and of what is the same for all queries. Exports make masks so
/// from an input that says which tokens are padding:
///
///   mask = select(padding[:, None, :] & (range(S)[None, :] <= range(S)[:,
///                 None]), 0, lowest)
///
/// has `lowest` behind the diagonal whatever the padding is, and before it what
/// is made of true instead of the comparison: select(padding, 0, lowest). Of S
/// numbers a sequence, not S^2.
class CausalKeyMasks {
public:
  /// What `mask` [batch or 1, heads or 1, queries, keys] is; makes operations
  /// behind the one that gives it. Each mask is looked at once.
  std::optional<CausalKeyMask> find(mlir::Value mask);

private:
  /// On one side of the diagonal, for all queries: a number, one of two by a
  /// condition, or what a value has, whose size of rows is 1.
  struct Content {
    std::optional<double> number, otherwise;
    mlir::Value condition, value;

    static Content ofNumber(double number);
    static Content ofChoice(mlir::Value condition, double number,
                            double otherwise);
    static Content ofValue(mlir::Value value);
    bool isNumber() const { return number && !condition; }
  };
  /// Before the diagonal and behind it; without one both are the same.
  struct Sides {
    std::optional<int64_t> diagonal;
    Content inside, outside;
  };

  /// `aligned`: the last two dimensions are queries and keys, or 1; otherwise
  /// no dimension is that of queries.
  std::optional<Sides> sidesOf(mlir::Value value, bool aligned);
  std::optional<Sides> computeSides(mlir::Value value, bool aligned);
  std::optional<Sides> ofElements(mlir::Operation *op, bool aligned);
  std::optional<Sides> ofMoved(mlir::Operation *op, bool aligned);
  Content apply(mlir::Operation *op, llvm::ArrayRef<Content> operands);
  Content move(mlir::Operation *op, const Content &content, bool aligned);
  mlir::Value materialize(const Content &content, mlir::Type element);
  std::optional<CausalKeyMask> compute(mlir::Value mask,
                                       mlir::OpBuilder &behind);

  MaskRegions regions;
  /// Of the mask that is looked at.
  mlir::OpBuilder *builder = nullptr;
  std::optional<mlir::Location> loc;
  llvm::DenseMap<std::pair<mlir::Value, int>, std::optional<Sides>> sides;
  llvm::SmallVector<mlir::Value> decided;
  /// From the mask to what is looked at.
  int steps = 0;
  llvm::DenseMap<mlir::Value, std::optional<CausalKeyMask>> found;
};

} // namespace ax

#endif // AX_PASSES_RAISE_CAUSALKEYMASK_H
