//===- ImportFuzzer.cpp - Any bytes as a model ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../../fuzz/TryPlan.h"
#include "ax/Compile/Compile.h"
#include "ax/Import/Import.h"
#include "ax/Inspect/Inspect.h"
#include "ax/Plan/Plan.h"
#include "ax/Support/Error.h"

#include "llvm/Support/JSON.h"

#include <cstdio>
#include <cstdlib>
#include <unistd.h>

using namespace ax;

/// Larger ones are what other tests compile.
static bool isSmall(mlir::ModuleOp module) {
  constexpr unsigned maxOps = 48;
  unsigned numOps = 0;
  module.walk([&](mlir::Operation *) { ++numOps; });
  return numOps <= maxOps;
}

/// All phases for two ranks; what comes out is a plan that runs.
static void tryCompile(mlir::ModuleOp module) {
  if (!isSmall(module))
    return;
  CompileOptions options;
  options.strategy.tensor.col = 2;
  if (llvm::Error error = compile(module, options)) {
    std::fprintf(stderr, "%s\n",
                 describeError(std::move(error)).message.c_str());
    std::abort();
  }
  test::expectNoFault(plan::verifyPlan(module), /*isVerified=*/true);
  test::tryPlan(module);
}

/// Trains the first output with each loss of its kind: what cannot be trained
/// is an error, but none of ours.
static void tryTrain(const std::string &path, import::ImportOptions options) {
  options.training = true;
  for (const char *loss : {"mse", "cross_entropy", "bce_with_logits"}) {
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    auto module = import::importModel(path, options, context);
    if (!module) {
      test::expectNoFault(module.takeError(), /*isVerified=*/false);
      return;
    }
    auto program = *(*(**module).getOps<PlanOp>().begin())
                        .getBody()
                        .getOps<ProgramOp>()
                        .begin();
    if (!isSmall(**module) || program.getNumResults() == 0)
      return;
    CompileOptions how;
    how.strategy.training.emplace();
    auto parsed = Loss::parse(std::string(loss) + "(" +
                              program.getResultName(0).str() + ",target)");
    if (!parsed) {
      llvm::consumeError(parsed.takeError());
      return;
    }
    how.strategy.training->loss = *parsed;
    if (llvm::Error error = compile(**module, how))
      test::expectNoFault(std::move(error), /*isVerified=*/false);
    else if (llvm::Error fault = plan::verifyPlan(**module))
      test::expectNoFault(std::move(fault), /*isVerified=*/true);
    else
      predict(**module);
  }
}

/// Imports `path`; aborts when a fault of ours is reported.
static ExitCode tryImport(const std::string &path,
                          const import::ImportOptions &options) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto module = import::importModel(path, options, context);
  if (module) {
    tryCompile(**module);
    tryTrain(path, options);
    return ExitCode::Success;
  }
  ErrorDescription why = describeError(module.takeError());
  if (why.code == ExitCode::Internal) {
    std::fprintf(stderr, "%s\n", why.message.c_str());
    std::abort();
  }
  return why.code;
}

/// What is told of `path` is JSON; aborts when a fault of ours is reported.
static void tryInspect(const std::string &path) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto inspection = inspect::inspectModel(path, {}, {}, context);
  if (!inspection) {
    ErrorDescription why = describeError(inspection.takeError());
    if (why.code == ExitCode::Internal) {
      std::fprintf(stderr, "%s\n", why.message.c_str());
      std::abort();
    }
    return;
  }
  std::string text, json;
  llvm::raw_string_ostream textOs(text), jsonOs(json);
  inspect::print(*inspection, /*all=*/true, textOs);
  inspect::printJSON(*inspection, jsonOs);
  llvm::cantFail(llvm::json::parse(json));
}

static std::string &folder() {
  static std::string path;
  return path;
}

/// A file of this process, removed at its end.
static std::string modelPath() {
  if (folder().empty()) {
    char name[] = "/tmp/ax-import-fuzz-XXXXXX";
    folder() = mkdtemp(name);
    std::atexit([] {
      unlink((folder() + "/model.onnx").c_str());
      rmdir(folder().c_str());
    });
  }
  return folder() + "/model.onnx";
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string path = modelPath();
  FILE *file = std::fopen(path.c_str(), "wb");
  if (!file)
    return 0;
  if (size)
    std::fwrite(data, 1, size, file);
  std::fclose(file);

  tryInspect(path);
  import::ImportOptions options;
  if (tryImport(path, options) != ExitCode::Usage)
    return 0;
  // The symbols of our exports.
  options.dims["batch"] = 2;
  if (tryImport(path, options) != ExitCode::Usage)
    return 0;
  options.dims["sequence"] = 3;
  tryImport(path, options);
  return 0;
}
