//===- Actions.h - What axrun does with a plan ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_AXRUN_ACTIONS_H
#define AX_TOOLS_AXRUN_ACTIONS_H

#include "Options.h"

#include <chrono>

namespace ax {

/// A plan that is compiled, whose weights are not read yet, and what is to be
/// done with it.
struct Task {
  const RunOptions &options;
  Session &session;
  /// When the tool began to load the plan.
  std::chrono::steady_clock::time_point begin;

  double secondsSinceBegin() const;
};

/// Each gives the exit code.
llvm::Expected<int> trainPlan(const Task &task);
llvm::Expected<int> evaluateSamples(const Task &task);
llvm::Expected<int> predictSamples(const Task &task);
llvm::Expected<int> generateTokens(const Task &task);
/// Runs one set of inputs, and measures, compares and writes what it gives.
llvm::Expected<int> runInputs(const Task &task);

} // namespace ax

#endif // AX_TOOLS_AXRUN_ACTIONS_H
