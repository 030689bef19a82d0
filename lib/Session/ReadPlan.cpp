//===- ReadPlan.cpp - Programs of a plan file -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ReadPlan.h"

#include "ax/Session/Session.h"
#include "ax/Support/Error.h"
#include "llvm/Support/FileSystem.h"

using namespace ax;

llvm::Expected<PlanSource> ax::readPlanText(const std::string &path,
                                            const SessionOptions &options,
                                            ChoosePrograms choose,
                                            FindTarget findTarget) {
  // Code is run only where the user knows that it is some.
  if (rt::isCompiledPlan(path))
    return makeErrorf(ExitCode::BadPlan,
                      "'{0}' is a compiled plan, which is code: it is run only "
                      "under a name that ends in {1}",
                      path, compiledPlanEnding);
  if (!options.compiler && !llvm::sys::fs::exists(path))
    return makeError(ExitCode::InputOutput, "cannot open '" + path + "'");
  if (!options.compiler)
    return makeErrorf(ExitCode::Unsupported,
                      "'{0}' is no compiled plan ({1}), and there is no "
                      "compiler here: axopt --compile makes one",
                      path, compiledPlanEnding);
  return options.compiler(path, options, choose, findTarget);
}

llvm::Expected<PlanSource> ax::readPlanCode(const std::string &path,
                                            const SessionOptions &options,
                                            ChoosePrograms choose,
                                            FindTarget findTarget) {
  if (options.separateKernels || !options.dumpAfter.empty() ||
      options.tellTimes || !options.cacheDir.empty() || options.target)
    return makeError(ExitCode::Usage,
                     "'" + path +
                         "' is compiled: --cache-dir, --dump-after, "
                         "--mlir-timing, --separate-kernels and --target are "
                         "for plans as text");
  auto plan = rt::readCompiledPlan(path);
  if (!plan)
    return plan.takeError();
  if (!plan->embedded.empty() && !options.modelDir.empty())
    return makeError(ExitCode::Usage,
                     "'" + path +
                         "' has its weights itself: --model-dir has no use");
  std::vector<CodeTarget> targets;
  for (const rt::TargetPrograms &each : plan->targets)
    targets.push_back(each.target);
  auto device =
      findTarget(plan->targets.front().programs.front()->mesh.numRanks());
  if (!device)
    return device.takeError();
  auto best = chooseTarget(targets, *device);
  if (!best)
    return addContext(best.takeError(), path);
  PlanSource source;
  // Code that leaves attention to cuDNN would have been the best.
  if (const GpuTarget *gpu = device->getGpu(); gpu && !gpu->hasCudnn) {
    GpuTarget with = *gpu;
    with.hasCudnn = true;
    auto better = chooseTarget(targets, with);
    if (better && *better != *best)
      source.withoutCudnn = "of '" + path + "' the code for '" +
                            targets[*best].name + "' is run, not that for '" +
                            targets[*better].name + "'";
    else if (!better)
      llvm::consumeError(better.takeError());
  }
  plan->targets = {std::move(plan->targets[*best])};
  std::vector<llvm::StringRef> names;
  for (const auto &program : plan->targets.front().programs)
    names.push_back(program->name);
  auto chosen = choose(names);
  if (!chosen)
    return chosen.takeError();
  source.plan = std::move(*plan);
  source.files = {path};
  return source;
}
