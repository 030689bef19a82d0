//===- Compile.cpp - Making plans from C ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Common.h"
#include "ax/Driver/MakePlan.h"
#include "ax/Plan/Plan.h"
#include "ax/Session/CompileModule.h"
#include "ax/Support/OutputCheck.h"
#include "ax/Support/Stack.h"

#include "llvm/Support/Path.h"

using namespace ax;

struct AxPlan {
  std::string model;
  driver::ModelOptions options;
  capi::Tell warn;
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

static llvm::Error compileModel(const char *modelPath,
                                const AxCompileOptions *options, AxPlan &plan) {
  AxCompileOptions given = AX_COMPILE_OPTIONS_INIT;
  if (llvm::Error error = capi::copyOptions(options, given, "AxCompileOptions",
                                            "AX_COMPILE_OPTIONS_INIT"))
    return error;
  if (!modelPath)
    return makeError(ExitCode::Usage, "the model's path is null");
  plan.model = modelPath;
  llvm::StringRef extension = llvm::sys::path::extension(plan.model);
  if (extension == ".mlir" || extension == compiledPlanEnding)
    return makeError(ExitCode::Usage,
                     "'" + plan.model + "' is a plan already: use axLoad");
  plan.warn = capi::teller(given.warn, given.warnContext);
  auto parsed = driver::parseModelFlags(capi::listFrom(given.flags));
  if (!parsed)
    return parsed.takeError();
  plan.options = std::move(*parsed);
  plan.context.loadDialect<AxDialect>();
  driver::Diagnostics diagnostics(plan.context);
  auto module =
      driver::makePlan(plan.model, plan.options, diagnostics, plan.warn);
  if (!module)
    return module.takeError();
  plan.module = std::move(*module);
  return plan::verifyPlan(*plan.module);
}

int axCompile(const char *modelPath, const AxCompileOptions *options,
              AxPlan **plan) {
  *plan = nullptr;
  auto made = std::make_unique<AxPlan>();
  if (llvm::Error error = callWithLargeStack(
          [&] { return compileModel(modelPath, options, *made); }))
    return capi::fail(std::move(error));
  *plan = made.release();
  return 0;
}

static llvm::Error save(const AxPlan &plan, const char *path) {
  if (!path)
    return makeError(ExitCode::Usage, "the plan's path is null");
  OutputCheck files;
  for (const std::string &file : import::filesOfModel(plan.model))
    files.reads(file);
  for (const std::string &file : plan.options.otherInputs)
    files.reads(file);
  files.reads(plan.options.strategyFile);
  files.writes("axSavePlan", path);
  if (auto constants = plan::constantsFileFor(path))
    files.writes("axSavePlan", *constants);
  if (llvm::Error error = files.check())
    return error;
  if (llvm::StringRef(path).ends_with(compiledPlanEnding))
    return driver::writeCompiled(*plan.module, plan.model, path, plan.options,
                                 plan.warn);
  return plan::writePlan(*plan.module, path);
}

int axSavePlan(AxPlan *plan, const char *path) {
  llvm::Error error = callWithLargeStack([&] { return save(*plan, path); });
  return error ? capi::fail(std::move(error)) : 0;
}

int axLoadPlan(AxPlan *plan, const AxOptions *options, AxSession **session) {
  auto compiler = [&](const std::string &path, const SessionOptions &how,
                      ChoosePrograms choose,
                      FindTarget findTarget) -> llvm::Expected<PlanSource> {
    PlanOp op = *plan->module->getOps<PlanOp>().begin();
    auto target = findTarget(op.getMesh().numRanks());
    if (!target)
      return target.takeError();
    return compileModule(*plan->module, path, how, choose, *target);
  };
  return capi::loadSession(plan->model, options, compiler, session);
}

void axFreePlan(AxPlan *plan) { delete plan; }
