//===- MakePlan.cpp - A model as a plan -----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Driver/MakePlan.h"

#include "ax/Support/Error.h"

using namespace ax;

std::optional<MachineRates> driver::machineOf(const ModelOptions &options) {
  if (options.machine)
    return options.machine;
  for (const Target &target : options.targets)
    if (const GpuTarget *gpu = target.getGpu())
      // What is simulated stands for a real one.
      return MachineRates::ofGpu(
          GpuTarget{gpu->capability, gpu->hasCudnn}.toText());
  return std::nullopt;
}

llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
driver::makePlan(const std::string &model, const ModelOptions &options,
                 Diagnostics &diagnostics, const Tell &warn, CompileOptions how,
                 const OnFound &onFound) {
  auto module =
      import::importModel(model, options.import, diagnostics.getContext());
  if (!module)
    return module.takeError();
  how.strategy = options.strategy;
  how.strict = options.strict;
  how.evaluationMode = options.import.evaluationMode;
  how.machine = machineOf(options);
  if (options.search) {
    auto found = search::search(**module, how, *options.search);
    if (!found)
      return addContext(found.takeError(), model);
    if (onFound)
      if (llvm::Error error = onFound(*found))
        return error;
    how.strategy = found->candidates.front().strategy;
  }
  llvm::Error error = compile(**module, how);
  diagnostics.tellWarnings(warn);
  if (error)
    return addContext(std::move(error), model);
  return module;
}
