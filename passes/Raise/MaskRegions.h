//===- MaskRegions.h - Masks that ranges make -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PASSES_RAISE_MASKREGIONS_H
#define AX_PASSES_RAISE_MASKREGIONS_H

#include "Bands.h"

#include "ax/Dialect/Ax.h"

#include "llvm/ADT/DenseMap.h"

#include <variant>

namespace ax {

/// One number in each band.
using MaskRegion = Bands<double>;

/// What an element-wise operation makes of one number of each operand.
std::optional<double> evaluateOnNumbers(mlir::Operation *op,
                                        llvm::ArrayRef<double> numbers);

/// Finds regions without looking at elements, of which a mask of S tokens has
/// S^2: a comparison of ranges says where a band ends, and what is made of
/// several element by element has the ends of all. So `(range(S)[None, :] <=
/// range(S)[:, None]) ? 0 : -inf` is {{0}, {0, -inf}}. A mask that a model
/// stores is looked at.
class MaskRegions {
public:
  /// Nothing where the leading dimensions matter, or it is none of these.
  std::optional<MaskRegion> find(mlir::Value value);

private:
  /// row * i + column * j + offset, in integers.
  struct Plane {
    int64_t row = 0, column = 0, offset = 0;
  };
  using Content = std::variant<std::monostate, Plane, MaskRegion>;

  Content contentOf(mlir::Value value);
  Content compute(mlir::Value value);
  static Content ofElements(mlir::Value value, int64_t mostElements);
  static Content combine(const Plane &lhs, const Plane &rhs, int64_t sign);
  /// Where a difference of planes is below 0, say.
  static Content halvesOf(CompareOp compare, const Content &difference);

  llvm::DenseMap<mlir::Value, Content> known;
};

} // namespace ax

#endif // AX_PASSES_RAISE_MASKREGIONS_H
