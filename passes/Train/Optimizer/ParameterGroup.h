//===- ParameterGroup.h - Weights that are trained otherwise ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PASSES_TRAIN_OPTIMIZER_PARAMETERGROUP_H
#define AX_PASSES_TRAIN_OPTIMIZER_PARAMETERGROUP_H

#include "ax/Dialect/Ax.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <vector>

namespace ax {

/// `PATTERN|rank<2:lr=2e-3,weight_decay=0`: other options for the states whose
/// name matches one of the globs, or that have fewer dimensions.
struct ParameterGroup {
  std::vector<std::string> patterns;
  int64_t belowRank = 0;
  std::optional<double> learningRate, weightDecay;

  static llvm::Expected<ParameterGroup> parse(llvm::StringRef text);
  bool contains(llvm::StringRef name, int64_t rank) const;
};

/// Names of the plan's states that `group` contains; a Usage error when its
/// globs name none.
llvm::Expected<std::vector<std::string>> findGroup(PlanOp plan,
                                                   const ParameterGroup &group);

/// `PATTERN=0,7`: rows (along the first dimension) that stay as they are, of
/// the states whose name matches the glob.
struct FrozenRows {
  std::string pattern;
  std::vector<int64_t> rows;

  static llvm::Expected<FrozenRows> parse(llvm::StringRef text);
  bool contains(llvm::StringRef name) const;
  /// Those of `states`, which are trained, that it names; a Usage error when
  /// there are none, or when one has no such row.
  llvm::Expected<std::vector<StateOp>>
  find(llvm::ArrayRef<StateOp> states) const;
};

} // namespace ax

#endif // AX_PASSES_TRAIN_OPTIMIZER_PARAMETERGROUP_H
