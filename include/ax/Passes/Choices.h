//===- Choices.h - What flags choose of a model -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the passes find, for who only looks: in a plan as Import and the phases
// Normalize and Raise leave it, with one program or more.
//
//===----------------------------------------------------------------------===//
#ifndef AX_PASSES_CHOICES_H
#define AX_PASSES_CHOICES_H

#include "ax/Dialect/Ax.h"
#include "ax/Dialect/WeightKind.h"
#include "ax/Passes/Strategy.h"
#include "llvm/Support/Error.h"

#include <optional>

namespace ax {

/// Whether training changes a state, and why.
struct WeightChoice {
  StateOp state;
  std::optional<WeightKind> kind;
  bool isTrained = false;
  /// A flag, --trainable or --frozen, decided it.
  bool isByFlags = false;
  /// It meets data as parameters do, and is none by its values.
  bool isVetoed = false;
  llvm::StringRef why;
};

/// Returns for each state, in their order, whether it trains and why.
/// `trainable` and `frozen` are globs; a Usage error where one names nothing.
llvm::Expected<std::vector<WeightChoice>>
chooseTrainable(PlanOp plan, llvm::ArrayRef<std::string> trainable,
                llvm::ArrayRef<std::string> frozen);

/// What a pattern of a flag names.
struct PatternMatch {
  std::string flag, pattern;
  std::vector<std::string> names;
};

/// Returns what each pattern of --shard, --cut and training's flags names, in
/// this order. A Usage error where one names nothing.
llvm::Expected<std::vector<PatternMatch>>
matchPatterns(PlanOp plan, const Strategy &strategy);

} // namespace ax

#endif // AX_PASSES_CHOICES_H
