//===- main.cpp - axopt: ONNX in, plan out --------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Actions.h"
#include "Options.h"
#include "ax/Dialect/Ax.h"
#include "ax/Import/Export.h"
#include "ax/Support/AtomicFile.h"
#include "ax/Support/Error.h"
#include "ax/Support/Process.h"
#include "ax/Support/Stack.h"

using namespace ax;

void ax::warn(const std::string &text) { tell("axopt", "warning: " + text); }

static llvm::Error run(const Options &options) {
  // What a plan is made of is known when it is read.
  if (!options.isPlan)
    if (llvm::Error error =
            checkOutputs(options, import::filesOfModel(options.input)))
      return error;
  mlir::MLIRContext context;
  context.loadDialect<AxDialect>();
  if (options.inspect != Inspect::No)
    return inspectModel(options, context);
  if (!options.saveStrategy.empty() && !options.search)
    if (llvm::Error error = writeFileAtomically(options.saveStrategy,
                                                options.strategy.toYAML()))
      return error;
  if (!options.exportOnnx.empty())
    return exportModel(options);
  return makePlan(options, context);
}

static int runTool(int argc, char **argv) {
  llvm::Expected<Options> options = parseOptions(argc, argv);
  if (!options)
    return reportError("axopt", options.takeError());
  if (llvm::Error error = run(*options))
    return reportError("axopt", std::move(error));
  return static_cast<int>(ExitCode::Success);
}

int main(int argc, char **argv) {
  setUpProcess("axopt");
  return runWithLargeStacks("axopt", [&] { return runTool(argc, argv); });
}
