//===- WeightKind.h - What a model tells of a weight ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_DIALECT_WEIGHTKIND_H
#define AX_DIALECT_WEIGHTKIND_H

#include "llvm/ADT/StringRef.h"

#include <optional>

namespace ax {

/// Why a weight is taken for a parameter, or for none, beside what is done with
/// it.
enum class WeightKind {
  /// The file says so.
  Parameter,
  Buffer,
  /// Made by the model's code, of no parameter.
  Constant,
  /// An operator takes it as its parameter, or as what it observed.
  LayerParameter,
  Statistic,
  /// Its values say so.
  Sines,
  Mask,
  ZeroRow,
  Progression,
  Grid,
  /// Zeros with which a recurrent layer begins: one row for each sample.
  InitialState,
  /// Equal parts along the first dimension, as an exporter makes them of one.
  Repeated,
};

/// Attribute of a state of a program that is to train: a WeightKind, by name.
/// Made by Import, gone after ax-select-trainable.
inline constexpr llvm::StringLiteral kWeightKind = "ax.weight_kind";

/// Attribute of a state whose value may decide nothing, since training may
/// change it: of a plan that is to train, before ax-select-trainable, where
/// `trainable` takes its place.
inline constexpr llvm::StringLiteral kMayBeTrained = "ax.may_be_trained";

/// `parameter`, `buffer`, ...
llvm::StringRef toString(WeightKind kind);
std::optional<WeightKind> parseWeightKind(llvm::StringRef name);

} // namespace ax

#endif // AX_DIALECT_WEIGHTKIND_H
