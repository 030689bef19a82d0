//===- ScaledFactor.h - Factors of eight bits times a scale -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_DIALECT_SCALEDFACTOR_H
#define AX_DIALECT_SCALEDFACTOR_H

#include "ax/Dialect/Ax.h"

#include <optional>

namespace ax {

/// By how much integers of eight bits without a sign are less with one.
inline constexpr int32_t middleOfUnsigned = 128;
/// The number that all elements of a constant of integers are.
std::optional<int64_t> integerOf(mlir::Value value);

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
/// bits: widened, of integers less a zero point, times a scale, of floats
/// perhaps rounded after that, and perhaps moved.
struct ScaledFactor {
  /// The numbers; of integers it may be a constant in a wider type, as folding
  /// makes it, whose elements less `offset` are in the range of i8.
  mlir::Value numbers;
  int32_t offset = 0;
  /// In i32, of integers only.
  FactorParameter zero;
  FactorParameter scale;
  /// What moves elements behind the multiplication, in order: transpositions,
  /// and reshapes and slices where parameters are one number.
  llvm::SmallVector<mlir::Operation *, 2> moves;
};

/// Whether the factor's numbers are integers without a sign.
bool isOfUnsigned(const ScaledFactor &factor);

/// Returns what `factor` is made of, of floats or of integers of eight bits;
/// nothing where it is something else.
std::optional<ScaledFactor> matchScaledFloat8(mlir::Value factor);
std::optional<ScaledFactor> matchScaledInteger(mlir::Value factor);

/// Whether `op` is a product, `ax.linear` or `ax.dot`, of two such factors.
bool isProductOfFloat8(mlir::Operation *op);
/// Of integers it may be a convolution, too, but in groups of several filters
/// only by weights without a zero point, or without a sign and with one in the
/// middle; and a product may itself be of i32. Its sums are in i32's range,
/// unless they wrap anyway.
bool isProductOfIntegers(mlir::Operation *op);

/// How many numbers each sum of a product, `ax.linear`, `ax.dot` or `ax.conv`,
/// is of.
int64_t numTermsOf(mlir::Operation *product);

} // namespace ax

#endif // AX_DIALECT_SCALEDFACTOR_H
