//===- CompilePlan.cpp - All that a run of a plan needs -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Codegen/Codegen.h"

#include "ax/Support/CacheFolder.h"

#include "llvm/Support/FileSystem.h"

#include <set>

using namespace mlir;

namespace ax::codegen {

std::string usableCache(std::string asked,
                        const std::function<void(const std::string &)> &warn) {
  std::string folder =
      asked.empty() ? cacheFolder("kernels") : std::move(asked);
  if (folder.empty())
    return folder;
  std::error_code code = llvm::sys::fs::create_directories(folder);
  if (!code)
    return folder;
  if (warn)
    warn("kernels are not cached: cannot make folder '" + folder +
         "': " + code.message());
  return "";
}

/// Whether steps of it change weights.
static bool doesTrain(ProgramOp program) {
  auto plan = program->getParentOfType<PlanOp>();
  return program
      .walk([&](StoreOp store) {
        auto state = plan.lookupSymbol<StateOp>(store.getState());
        return state && !state.getFile().empty() ? mlir::WalkResult::interrupt()
                                                 : mlir::WalkResult::advance();
      })
      .wasInterrupted();
}

llvm::Expected<rt::CompiledPlan>
compilePlan(PlanOp plan, llvm::ArrayRef<llvm::StringRef> programs,
            llvm::ArrayRef<Target> targets, Options options) {
  rt::CompiledPlan result;
  auto onWidened = std::move(options.onWidened);
  for (auto state : plan.getBody().getOps<StateOp>()) {
    result.states.push_back(state.getSymName().str());
    result.isTraining |= state.getTrainable();
  }
  for (const Target &target : targets) {
    rt::TargetPrograms &made = result.targets.emplace_back();
    made.target = target.toCode();
    options.target = target;
    std::set<std::string> told;
    options.onWidened = [&](const std::string &text) {
      if (onWidened && told.insert(text).second)
        onWidened(text);
    };
    for (auto program : plan.getBody().getOps<ProgramOp>()) {
      if (!llvm::is_contained(programs, program.getSymName()))
        continue;
      // What is trained is saved with all else that the plan has.
      options.allWeights = doesTrain(program);
      auto generated = generate(program, options);
      if (!generated)
        return generated.takeError();
      made.programs.push_back(
          std::make_shared<rt::Program>(std::move(*generated)));
    }
  }
  return result;
}

} // namespace ax::codegen
