//===- PlanRunner.h - Plans on the reference interpreter --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_UNIT_PLAN_PLANRUNNER_H
#define AX_TEST_UNIT_PLAN_PLANRUNNER_H

#include "ax/Dialect/Ax.h"
#include "ax/Support/HostTensor.h"
#include "mlir/IR/BuiltinOps.h"

namespace ax::plan {

mlir::MLIRContext &testContext();

/// All ranks of the plan's first program, every micro-batch: the global
/// outputs, and what it stores. With `inputs`, states come from the model's
/// files; without, both are made up from their names.
llvm::Expected<std::vector<HostTensor>>
runPlan(mlir::ModuleOp module, llvm::ArrayRef<HostTensor> inputs = {});

/// The same as if there were no mesh.
llvm::Expected<std::vector<HostTensor>> runGlobally(mlir::ModuleOp module);

/// Largest difference; infinite when types differ.
double difference(llvm::ArrayRef<HostTensor> a, llvm::ArrayRef<HostTensor> b);

} // namespace ax::plan

#endif // AX_TEST_UNIT_PLAN_PLANRUNNER_H
