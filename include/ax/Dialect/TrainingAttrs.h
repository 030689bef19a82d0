//===- TrainingAttrs.h - What training passes are told ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_DIALECT_TRAININGATTRS_H
#define AX_DIALECT_TRAININGATTRS_H

#include "llvm/ADT/StringRef.h"

namespace ax {

/// Attribute of a result that is the new value of what a state observed
/// (running means) and has its name: i64, of how many equal parts of the batch
/// it sums up what each alone gives; 0 where nothing of the batch is in it.
/// Gone after ax-add-optimizer.
inline constexpr llvm::StringLiteral kStatistic = "ax.statistic";

/// Attribute of a result of a program: a ResultRoleAttr, what training takes it
/// for.
inline constexpr llvm::StringLiteral kRole = "ax.role";

/// Attribute of a result that is the gradient of the loss in a state: the
/// state. Gone after ax-add-optimizer.
inline constexpr llvm::StringLiteral kGradientOf = "ax.gradient_of";

/// Attribute of a program whose gradients are those of the loss times a scale
/// that changes: i64, the power of two which that is divided by. Gone after
/// ax-add-optimizer.
inline constexpr llvm::StringLiteral kLossShift = "ax.loss_shift";

/// Attribute of a program that trains: i64, the steps until its learning rate
/// stays what it is then.
inline constexpr llvm::StringLiteral kLearningRateSteps = "ax.schedule_steps";

/// Attribute of a program that trains: the optimizer's name and options, in
/// words. Runs of one do not go on with what another has kept.
inline constexpr llvm::StringLiteral kOptimizer = "ax.optimizer";

/// States of a loss's scale, i64 and zero at first: the exponent, counted from
/// the first one, and how many finite steps there were since it changed.
inline constexpr llvm::StringLiteral kLossScale = "optimizer.loss_scale";
inline constexpr llvm::StringLiteral kFiniteSteps = "optimizer.finite_steps";

} // namespace ax

#endif // AX_DIALECT_TRAININGATTRS_H
