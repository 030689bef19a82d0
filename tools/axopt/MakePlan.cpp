//===- MakePlan.cpp - A plan of a model -----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Driver/MakePlan.h"
#include "Actions.h"
#include "DryRun.h"
#include "ax/Dialect/Ax.h"
#include "ax/Plan/Plan.h"
#include "ax/Runtime/CompiledPlan.h"
#include "ax/Support/AtomicFile.h"
#include "ax/Support/ByteText.h"
#include "ax/Support/Error.h"
#include "ax/Support/MappedFile.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"

using namespace ax;
using mlir::ModuleOp;
using mlir::OwningOpRef;

/// Prints text that axopt-opt goes on with: locations are the names of ONNX
/// nodes.
static void printDump(const Options &options, llvm::StringRef phase,
                      mlir::Operation *op) {
  if (!llvm::is_contained(options.dumpAfter, phase))
    return;
  llvm::errs() << "// after " << phase << '\n';
  op->print(llvm::errs(),
            mlir::OpPrintingFlags().enableDebugInfo().useLocalScope());
  llvm::errs() << '\n';
}

/// The plan that was compiled; of its constants only what identifies them.
static llvm::Expected<OwningOpRef<ModuleOp>>
readText(const std::string &path, mlir::MLIRContext &context) {
  auto compiled = rt::readCompiledPlan(path);
  if (!compiled)
    return compiled.takeError();
  return plan::parsePlan(compiled->text, path, context);
}

static llvm::Expected<OwningOpRef<ModuleOp>>
load(const Options &options, driver::Diagnostics &diagnostics,
     mlir::TimingManager &timing) {
  mlir::MLIRContext &context = diagnostics.getContext();
  if (options.isPlan) {
    auto module = options.isCompiledPlan
                      ? readText(options.input, context)
                      : plan::readPlan(options.input, context);
    if (!module)
      return module.takeError();
    PlanOp plan = *(**module).getOps<PlanOp>().begin();
    if (llvm::Error error = checkOutputs(
            options,
            plan::pathsOf(plan, options.input,
                          plan::filesOf(plan).named(options.input)),
            plan::constantsFile(plan, options.input)))
      return error;
    return module;
  }
  // A search takes long, and would be lost.
  if (options.search)
    for (const std::string &file : {options.output, options.saveStrategy})
      if (!file.empty() && file != "-")
        if (llvm::Error error = AtomicFile::check(file))
          return error;
  CompileOptions how;
  how.after = [&](llvm::StringRef phase, ModuleOp module) {
    printDump(options, phase, module);
  };
  how.configure = mlir::applyPassManagerCLOptions;
  how.timing = &timing;
  auto onFound = [&](search::Result &found) -> llvm::Error {
    if (options.numDryRuns)
      if (llvm::Error error = measureBest(found, options.numDryRuns, options))
        return error;
    if (!options.quiet)
      search::print(found, llvm::errs());
    const Strategy &best = found.candidates.front().strategy;
    return options.saveStrategy.empty()
               ? llvm::Error::success()
               : writeFileAtomically(options.saveStrategy, best.toYAML());
  };
  return driver::makePlan(options.input, options, diagnostics, warn, how,
                          onFound);
}

/// The machine of a plan may have less memory than a rank needs.
static void warnOfMemory(ModuleOp module,
                         const cost::Predictions &predictions) {
  PlanOp plan = *module.getOps<PlanOp>().begin();
  int64_t has = cost::machineOf(plan).memoryBytes;
  int64_t needs = plan::predictStep(module, predictions).peakBytes;
  if (has && needs > has)
    warn("a rank needs " + bytesText(needs) + ", and has " + bytesText(has) +
         " on the machine that times are predicted for");
}

llvm::Error ax::makePlan(const Options &options, mlir::MLIRContext &context) {
  driver::Diagnostics diagnostics(context);
  // It tells when it goes.
  mlir::DefaultTimingManager timing;
  mlir::applyDefaultTimingManagerCLOptions(timing);
  auto module = load(options, diagnostics, timing);
  if (!module)
    return module.takeError();
  // What comes out is checked like what comes in; what was compiled has been.
  if (!options.isCompiledPlan)
    if (llvm::Error error = plan::verifyPlan(**module))
      return error;
  if (!options.quiet)
    diagnostics.tellNotes(
        [](const std::string &text) { tell("axopt", "note: " + text); });
  if (options.verifyOnly) {
    llvm::outs() << options.input << ": verified\n";
    return llvm::Error::success();
  }
  cost::Predictions predictions;
  bool isSummarised = !options.quiet && !options.isCompiledPlan;
  if (isSummarised || !options.report.empty())
    predictions = predict(**module);
  if (isSummarised) {
    plan::summarise(**module, llvm::errs(), predictions);
    warnOfMemory(**module, predictions);
  }
  if (!options.report.empty())
    if (llvm::Error error = writeFileAtomically(
            options.report, plan::reportJSON(**module, predictions)))
      return error;
  if (options.explain == Explain::Text)
    plan::explain(**module, llvm::outs());
  else if (options.explain == Explain::JSON)
    llvm::outs() << plan::explainJSON(**module) << '\n';
  if (llvm::Error error = checkMappedFiles())
    return error;
  if (options.explain != Explain::No && options.output == "-")
    return llvm::Error::success();
  if (!options.targets.empty()) {
    codegen::Options how;
    if (!options.dumpAfter.empty())
      how.after = [&](llvm::StringRef step, PlanOp plan) {
        printDump(options, step, plan);
      };
    how.timing = &timing;
    return driver::writeCompiled(**module, options.input, options.output,
                                 options, warn, std::move(how));
  }
  return plan::writePlan(**module, options.output);
}
