//===- ScaledFactor.h - Factors of eight bits times a scale -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_DIALECT_SCALEDFACTOR_H
#define AX_DIALECT_SCALEDFACTOR_H

#include "ax/Dialect/Ax.h"

#include <optional>

namespace ax {

/// What all elements of a factor have in common, or those of one row or column.
struct FactorParameter {
  /// One number, or numbers of which there are several along one dimension;
  /// null where there is no such parameter.
  mlir::Value value;
  /// The dimension of the factor along which they are; nothing where there is
  /// one.
  std::optional<int64_t> dim;
};

/// A factor of a product as `DequantizeLinear` makes it of numbers of eight
/// bits: widened, of integers less a zero point, times a scale, and perhaps
/// rounded and moved after that.
struct ScaledFactor {
  /// What widens the numbers.
  CastOp widened;
  /// In i32, of integers only.
  FactorParameter zero;
  FactorParameter scale;
  /// What moves elements behind the multiplication, in order: transpositions,
  /// and reshapes and slices where parameters are one number.
  llvm::SmallVector<mlir::Operation *, 2> moves;
};

/// Returns what `factor` is made of, of floats or of integers of eight bits;
/// nothing where it is something else.
std::optional<ScaledFactor> matchScaledFloat8(mlir::Value factor);
std::optional<ScaledFactor> matchScaledInteger(mlir::Value factor);

/// Whether `op` is a product, `ax.linear` or `ax.dot`, of two such factors.
bool isProductOfFloat8(mlir::Operation *op);
/// Of integers the product may itself be of i32. Its sums are in i32's range,
/// unless they wrap anyway.
bool isProductOfIntegers(mlir::Operation *op);

/// How many numbers each sum of a product, `ax.linear` or `ax.dot`, is of.
int64_t numTermsOf(mlir::Operation *product);

} // namespace ax

#endif // AX_DIALECT_SCALEDFACTOR_H
