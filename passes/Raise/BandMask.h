//===- BandMask.h - Masks of causality, windows and padding -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PASSES_RAISE_BANDMASK_H
#define AX_PASSES_RAISE_BANDMASK_H

#include "MaskRegions.h"

#include "mlir/IR/Builders.h"

namespace ax {

/// A mask of scores [.., queries, keys] that hides what is further from a
/// query's place than some, and beside that is the same for all queries.
struct BandMask {
  /// Query i sees keys t with before < t - i <= last, if any.
  std::optional<int64_t> before, last;
  /// What is left of it, [batch or 1, heads or 1, 1, keys]: i1 where it only
  /// hides keys; null: nothing.
  mlir::Value ofKeys;
  /// What is hidden has a number to which a score adds nothing: a query that
  /// sees no key attends to all of them alike.
  bool isMeanWhereEmpty = false;
};

/// Finds them where they are made element by element of bands that are known
/// (MaskRegions) and of what is the same for all queries. Exports make masks so
/// from an input that says which tokens are padding:
///
///   mask = select(padding[:, None, :] & (range(S)[None, :] <= range(S)[:,
///                 None]), 0, lowest)
///
/// has `lowest` behind the diagonal whatever the padding is, and before it what
/// is made of true instead of the comparison: select(padding, 0, lowest). Of S
/// numbers a sequence, not S^2. A window makes a third band, of `lowest` again.
class BandMasks {
public:
  /// What `mask` [batch or 1, heads or 1, queries, keys] is; makes operations
  /// behind the one that gives it. Each mask is looked at once.
  std::optional<BandMask> find(mlir::Value mask);

private:
  /// In a band, for all queries: a number, one of two by a condition, or what a
  /// value has, whose size of rows is 1.
  struct Content {
    std::optional<double> number, otherwise;
    mlir::Value condition, value;

    static Content ofNumber(double number);
    static Content ofChoice(mlir::Value condition, double number,
                            double otherwise);
    static Content ofValue(mlir::Value value);
    bool isNumber() const { return number && !condition; }
    bool operator==(const Content &o) const {
      return number == o.number && otherwise == o.otherwise &&
             condition == o.condition && value == o.value;
    }
  };
  using Contents = Bands<Content>;

  /// `aligned`: the last two dimensions are queries and keys, or 1; otherwise
  /// no dimension is that of queries.
  std::optional<Contents> contentsOf(mlir::Value value, bool aligned);
  std::optional<Contents> computeContents(mlir::Value value, bool aligned);
  std::optional<Contents> ofElements(mlir::Operation *op, bool aligned);
  std::optional<Contents> ofMoved(mlir::Operation *op, bool aligned);
  Content apply(mlir::Operation *op, llvm::ArrayRef<Content> operands);
  Content move(mlir::Operation *op, const Content &content, bool aligned);
  mlir::Value materialize(const Content &content, mlir::Type element);
  std::optional<BandMask> compute(mlir::Value mask, mlir::OpBuilder &behind);
  std::optional<mlir::Value> keysOf(const Content &seen, double hidden,
                                    mlir::Type type, bool isMean);

  MaskRegions regions;
  /// Of the mask that is looked at.
  mlir::OpBuilder *builder = nullptr;
  std::optional<mlir::Location> loc;
  llvm::DenseMap<std::pair<mlir::Value, int>, std::optional<Contents>> contents;
  llvm::SmallVector<mlir::Value> decided;
  /// From the mask to what is looked at.
  int steps = 0;
  llvm::DenseMap<mlir::Value, std::optional<BandMask>> found;
};

} // namespace ax

#endif // AX_PASSES_RAISE_BANDMASK_H
