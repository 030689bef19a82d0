//===- Pipelines.cpp - The phases for axopt-opt ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Compile/Compile.h"

#include "PhaseList.h"

#include "ax/Passes/OptionParsers.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace ax;

namespace {

struct PipelineOptions : mlir::PassPipelineOptions<PipelineOptions> {
  Option<Strategy> strategy{
      *this, "strategy",
      llvm::cl::desc("A file as --strategy takes it, or its text: {col: 2}")};
  Option<bool> strict{
      *this, "strict",
      llvm::cl::desc("What cannot be split as asked is an error")};

  CompileOptions take() const {
    CompileOptions options;
    options.strategy = strategy;
    options.strict = strict;
    return options;
  }
};

} // namespace

void ax::registerPipelines() {
  // The registry keeps no copies of names.
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const Phase &phase : phasesFor({}))
      result.push_back(("ax-phase-" + phase.name).str());
    return result;
  }();
  for (size_t i = 0; i < names.size(); ++i)
    mlir::PassPipelineRegistration<PipelineOptions>(
        names[i], "All of a phase's passes",
        [i](mlir::OpPassManager &manager, const PipelineOptions &given) {
          CompileOptions options = given.take();
          phasesFor(options)[i].add(manager);
        });
  mlir::PassPipelineRegistration<PipelineOptions>(
      "ax-compile", "All phases: from an imported model to a plan",
      [](mlir::OpPassManager &manager, const PipelineOptions &given) {
        CompileOptions options = given.take();
        for (const Phase &phase : phasesFor(options))
          phase.add(manager);
      });
}
