//===- PlanOnRanks.h - Interpreting a plan rank by rank ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_UNIT_LAYOUTS_PLANONRANKS_H
#define AX_TEST_UNIT_LAYOUTS_PLANONRANKS_H

#include "ax/Dialect/Ax.h"
#include "ax/Passes/Training.h"
#include "ax/Support/HostTensor.h"
#include "mlir/IR/BuiltinOps.h"

namespace ax::test {

using StateValue =
    llvm::function_ref<llvm::Expected<HostTensor>(llvm::StringRef state)>;

/// Global outputs of a program with stages for global inputs, and after them
/// what it stores, by the states' names: every stage
/// localised and interpreted on all its ranks, slice by slice of the axes in
/// time, with the collectives simulated and padding poisoned.
llvm::Expected<std::vector<HostTensor>>
interpretOnRanks(ProgramOp program, llvm::ArrayRef<HostTensor> inputs,
                 StateValue readState);

/// What a user asks for on the command line.
struct NamedStrategy {
  const char *name;
  /// `--tp`.
  const char *tensor = "1";
  int64_t data = 1, pipe = 1, micro = 1;
  bool sequenceParallel = false;
  /// Of a program that trains.
  const Training *training = nullptr;
  int64_t zero = 0;
  const char *schedule = "1f1b";
  std::vector<std::string> cuts = {};
};
llvm::ArrayRef<NamedStrategy> strategies();

/// All phases, from Normalize to Pipeline.
mlir::LogicalResult runPhases(mlir::ModuleOp module,
                              const NamedStrategy &strategy);

/// The state's global value, from its file in the model's folder.
llvm::Expected<HostTensor> readState(PlanOp plan, llvm::StringRef name);

ProgramOp firstProgram(mlir::ModuleOp module);

/// Largest difference over the largest magnitude of `expected`; infinity when
/// they do not compare.
double relativeDifference(const HostTensor &actual, const HostTensor &expected);

} // namespace ax::test

#endif // AX_TEST_UNIT_LAYOUTS_PLANONRANKS_H
