//===- MakePlan.cpp - A model as a plan -----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Driver/MakePlan.h"

#include "ax/Support/Error.h"

using namespace ax;

llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
driver::makePlan(const std::string &model, const ModelOptions &options,
                 Diagnostics &diagnostics, const Tell &warn,
                 CompileOptions how) {
  auto module =
      import::importModel(model, options.import, diagnostics.getContext());
  if (!module)
    return module.takeError();
  how.strategy = options.strategy;
  how.strict = options.strict;
  how.evaluationMode = options.import.evaluationMode;
  how.machine = options.machine;
  for (const Target &target : options.targets)
    if (const GpuTarget *gpu = target.getGpu(); gpu && !how.machine)
      // What is simulated stands for a real one.
      how.machine = MachineRates::ofGpu(
          GpuTarget{gpu->capability, gpu->hasCudnn}.toText());
  llvm::Error error = compile(**module, how);
  diagnostics.tellWarnings(warn);
  if (error)
    return addContext(std::move(error), model);
  return module;
}
