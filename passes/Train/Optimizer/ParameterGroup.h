//===- ParameterGroup.h - Weights that are trained otherwise ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PASSES_TRAIN_OPTIMIZER_PARAMETERGROUP_H
#define AX_PASSES_TRAIN_OPTIMIZER_PARAMETERGROUP_H

#include "ax/Dialect/Ax.h"
#include "ax/Passes/Training.h"

#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace ax {

/// Names of the plan's states that `group` contains; a Usage error when its
/// globs name none.
llvm::Expected<std::vector<std::string>> findGroup(PlanOp plan,
                                                   const ParameterGroup &group);

/// Those of `states`, which are trained, that `frozen` names; a Usage error
/// when there are none, or when one has no such row.
llvm::Expected<std::vector<StateOp>> findFrozen(llvm::ArrayRef<StateOp> states,
                                                const FrozenRows &frozen);

/// Where such a state has the rows, which the user numbers as the model does.
std::vector<int64_t> rowsIn(StateOp state, const FrozenRows &frozen);

} // namespace ax

#endif // AX_PASSES_TRAIN_OPTIMIZER_PARAMETERGROUP_H
