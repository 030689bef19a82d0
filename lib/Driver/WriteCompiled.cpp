//===- WriteCompiled.cpp - A plan with its kernels ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Driver/MakePlan.h"

#include "ax/Plan/Plan.h"
#include "ax/Support/Error.h"

#include "llvm/Support/FileSystem.h"

#include <thread>

using namespace ax;

llvm::Error driver::writeCompiled(mlir::ModuleOp module,
                                  const std::string &input,
                                  const std::string &output,
                                  const ModelOptions &options, const Tell &warn,
                                  codegen::Options how) {
  PlanOp plan = *module.getOps<PlanOp>().begin();
  PlanFiles files = plan::filesOf(plan);
  llvm::SmallString<256> folder(files.find(input));
  // A plan that came from elsewhere may name files that it must not.
  if (llvm::Error error = files.check(input))
    return error;
  if (std::error_code code = llvm::sys::fs::make_absolute(folder))
    return makeError(ExitCode::InputOutput,
                     "cannot find folder '" + folder + "': " + code.message());
  auto text = plan::printPlan(module, output);
  if (!text)
    return text.takeError();
  how.cacheDir = codegen::usableCache("", warn);
  how.onWidened = warn;
  how.numThreads = std::max<int64_t>(1, std::thread::hardware_concurrency());
  std::vector<llvm::StringRef> names;
  for (auto program : plan.getBody().getOps<ProgramOp>())
    names.push_back(program.getSymName());
  auto compiled = codegen::compilePlan(plan, names, options.targets, how);
  if (!compiled)
    return addContext(compiled.takeError(), input);
  compiled->setPredicted(plan::predictSteps(module, predict(module)),
                         cost::machineOf(plan).name);
  compiled->text = std::move(*text);
  compiled->files = std::move(files);
  compiled->files.folder = folder.str().str();
  std::optional<std::string> embedFrom;
  if (options.embedWeights)
    embedFrom = compiled->files.folder;
  return rt::writeCompiledPlan(output, std::move(*compiled), embedFrom);
}
