//===- CompileText.cpp - A plan's text, compiled for a device -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Session/CompileModule.h"

#include "ax/Codegen/Codegen.h"
#include "ax/Codegen/ComposedAttention.h"
#include "ax/Plan/Plan.h"
#include "ax/Session/Session.h"
#include "ax/Support/Error.h"
#include "ax/Support/JoinFirst.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Support/Timing.h"
#include "llvm/Support/Path.h"

#include <thread>

using namespace ax;

/// Prints text that axopt-opt goes on with.
static void printDump(llvm::StringRef step, PlanOp plan) {
  llvm::errs() << "// after " << step << '\n';
  plan.print(llvm::errs(), mlir::OpPrintingFlags().enableDebugInfo());
  llvm::errs() << '\n';
}

/// As a compiled plan has it from axopt; nothing where that cannot be known,
/// which ends no run.
static void addPredicted(mlir::ModuleOp module, rt::CompiledPlan &compiled) {
  PlanOp plan = *module.getOps<PlanOp>().begin();
  cost::Predictions lists;
  for (auto program : plan.getBody().getOps<ProgramOp>()) {
    auto predicted = codegen::predict(program);
    if (!predicted)
      return llvm::consumeError(predicted.takeError());
    lists.insert(predicted->begin(), predicted->end());
  }
  compiled.setPredicted(plan::predictSteps(module, lists),
                        cost::machineOf(plan).name);
}

llvm::Expected<PlanSource> ax::compileModule(mlir::ModuleOp module,
                                             const std::string &path,
                                             const SessionOptions &options,
                                             ChoosePrograms choose,
                                             const Target &target) {
  PlanOp plan = *module.getOps<PlanOp>().begin();
  codegen::Options how;
  how.cacheDir = codegen::usableCache(options.cacheDir, options.warn);
  how.numThreads = std::max<int64_t>(1, std::thread::hardware_concurrency());
  how.separateKernels = options.separateKernels;
  how.onWidened = options.warn;
  bool isTold = false;
  if (options.note)
    how.onMany = [&](int64_t count) {
      if (!std::exchange(isTold, true))
        options.note("compiling " + std::to_string(count) + " kernels" +
                     (how.cacheDir.empty() ? ""
                                           : ", which '" + how.cacheDir +
                                                 "' keeps for later runs"));
    };
  if (!options.dumpAfter.empty())
    how.after = [&](llvm::StringRef step, PlanOp lowered) {
      if (llvm::is_contained(options.dumpAfter, step))
        printDump(step, lowered);
    };
  if (options.tellTimes)
    how.onKernels = [](int64_t compiled, int64_t found) {
      // Processes that share standard error do not cut each other's line.
      llvm::errs() << llvm::formatv(
                          "kernels compiled: {0}, found in the cache: {1}\n",
                          compiled, found)
                          .str();
    };
  mlir::DefaultTimingManager timing;
  timing.setEnabled(options.tellTimes);
  how.timing = &timing;
  std::vector<llvm::StringRef> names;
  for (auto program : plan.getBody().getOps<ProgramOp>())
    names.push_back(program.getSymName());
  auto chosen = choose(names);
  if (!chosen)
    return chosen.takeError();
  auto compiled = codegen::compilePlan(plan, *chosen, target, how);
  if (!compiled)
    return addContext(compiled.takeError(), path);
  if (options.predictsTimes)
    addPredicted(module, *compiled);
  PlanSource source{std::move(*compiled), {path}};
  source.plan.files = plan::filesOf(plan);
  if (std::string constants = plan::constantsFile(plan, path);
      !constants.empty())
    source.files.push_back(constants);
  if (const GpuTarget *gpu = target.getGpu())
    if (auto names = codegen::findComposedAttention(plan, *gpu); !names.empty())
      source.withoutCudnn = "attention of 16 bits is made of products and a "
                            "softmax, in " +
                            joinFirst(names);
  return source;
}

llvm::Expected<PlanSource> ax::compileText(const std::string &path,
                                           const SessionOptions &options,
                                           ChoosePrograms choose,
                                           FindTarget findTarget) {
  if (llvm::sys::path::extension(path) == ".onnx")
    return makeError(ExitCode::BadPlan,
                     "'" + path +
                         "' is an ONNX model: compile it with axopt first");
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<AxDialect>();
  auto module = plan::readPlan(path, context);
  if (!module)
    return module.takeError();
  PlanOp plan = *(*module)->getOps<PlanOp>().begin();
  // Before any work is done for each rank.
  auto target = findTarget(plan.getMesh().numRanks());
  if (!target)
    return target.takeError();
  if (llvm::Error error = plan::verifyPlan(**module))
    return addContext(std::move(error), path);
  return compileModule(**module, path, options, choose, *target);
}
