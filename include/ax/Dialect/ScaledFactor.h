//===- ScaledFactor.h - Factors of eight bits times a scale -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_DIALECT_SCALEDFACTOR_H
#define AX_DIALECT_SCALEDFACTOR_H

#include "ax/Dialect/Ax.h"

#include <optional>

namespace ax {

/// A factor of a product as `DequantizeLinear` makes it of floats of eight
/// bits: widened, times a scale, and perhaps rounded and moved after that.
struct ScaledFactor {
  /// What widens the numbers.
  CastOp widened;
  /// One number, or numbers of which there are several along one dimension;
  /// null: 1.
  mlir::Value scale;
  /// The dimension of the factor along which they are; nothing where there is
  /// one.
  std::optional<int64_t> dim;
  /// What moves elements behind the multiplication, in order: transpositions,
  /// and reshapes and slices where there is one scale.
  llvm::SmallVector<mlir::Operation *, 2> moves;
};

/// Returns what `factor` is made of; nothing where it is something else.
std::optional<ScaledFactor> matchScaledFloat8(mlir::Value factor);

/// Whether `op` is a product, `ax.linear` or `ax.dot`, of two such factors.
bool isProductOfFloat8(mlir::Operation *op);

} // namespace ax

#endif // AX_DIALECT_SCALEDFACTOR_H
