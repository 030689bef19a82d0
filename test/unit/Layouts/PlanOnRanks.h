//===- PlanOnRanks.h - Evaluating a plan rank by rank -----------*- C++ -*-===//
#ifndef AX_TEST_UNIT_LAYOUTS_PLANONRANKS_H
#define AX_TEST_UNIT_LAYOUTS_PLANONRANKS_H

#include "ax/Dialect/Ax.h"
#include "ax/Support/HostTensor.h"

namespace ax::test {

using StateValue =
    llvm::function_ref<llvm::Expected<HostTensor>(llvm::StringRef state)>;

/// Global outputs of a program with stages for global inputs: every stage
/// localised and evaluated on all its ranks, slice by slice of the axes in
/// time, with the collectives simulated and padding poisoned.
llvm::Expected<std::vector<HostTensor>>
evaluateOnRanks(ProgramOp program, llvm::ArrayRef<HostTensor> inputs,
                StateValue readState);

} // namespace ax::test

#endif // AX_TEST_UNIT_LAYOUTS_PLANONRANKS_H
