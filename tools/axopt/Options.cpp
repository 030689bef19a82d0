//===- Options.cpp - The command line of axopt ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Options.h"
#include "ax/Codegen/Codegen.h"
#include "ax/Passes/Passes.h"
#include "ax/Support/Error.h"
#include "ax/Support/GivenWeights.h"
#include "ax/Support/PlanFiles.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Path.h"

using namespace ax;

namespace {
#define AX_FLAGS_INC "axoptFlags.inc"
#include "ax/Support/FlagTable.def"

llvm::Error usage(const llvm::Twine &message) {
  return makeError(ExitCode::Usage, message);
}

/// Flags of MLIR's pass manager, which LLVM's command line parses.
llvm::Error readMLIR(const CommandLine &flags) {
  registerAxPasses();
  mlir::registerCSEPass();
  mlir::registerCanonicalizerPass();
  mlir::registerPassManagerCLOptions();
  mlir::registerDefaultTimingManagerCLOptions();
  std::vector<std::string> words{"axopt"};
  for (const std::string &text : flags.list(OPT_mlir))
    words.push_back("--mlir-" + text);
  std::vector<const char *> arguments;
  for (const std::string &word : words)
    arguments.push_back(word.c_str());
  std::string errors;
  llvm::raw_string_ostream os(errors);
  if (llvm::cl::ParseCommandLineOptions(static_cast<int>(arguments.size()),
                                        arguments.data(), "", &os))
    return llvm::Error::success();
  llvm::StringRef first = llvm::StringRef(errors).split('\n').first;
  first.consume_front("axopt: ");
  return usage("a flag of MLIR's: " + first);
}

/// What is compiled, and for what.
llvm::Error readCompile(const CommandLine &flags, Options &options) {
  std::string idle = flags.firstOf({OPT_target, OPT_embed_weights});
  if (!flags.isOn(OPT_compile)) {
    llvm::StringRef name = options.output;
    bool isModel = name.ends_with(".onnx");
    if (isModel || name.ends_with(compiledPlanEnding))
      return usage("-o " + name + ": a plan's text has no such name; " +
                   (isModel ? "--export-onnx" : "--compile") +
                   " writes files that have");
    return idle.empty() ? llvm::Error::success()
                        : usage(idle + " is for --compile");
  }
  if (!llvm::StringRef(options.output).ends_with(compiledPlanEnding))
    return usage("--compile makes a file that ends in .axc: -o model.axc");
  return driver::readTarget(flags, options);
}

/// A flag that would do nothing is an error.
llvm::Error checkUse(const CommandLine &flags, const Options &options) {
  if (options.verifyOnly && !options.isPlan)
    return usage("--verify checks a plan (.mlir), not a model: '" +
                 options.input + "'");
  bool isExport = flags.has(OPT_export_onnx);
  if (options.inspect != Inspect::No) {
    if (options.isPlan)
      return usage(llvm::Twine("--inspect is for models: --explain ") +
                   (options.isCompiledPlan
                        ? "tells of the compiled plan '"
                        : "and --report tell of the plan '") +
                   options.input + "'");
    if (std::string idle = flags.firstOf(
            {OPT_o, OPT_verify, OPT_export_onnx, OPT_weights, OPT_partial,
             OPT_explain, OPT_report, OPT_strict, OPT_save_strategy, OPT_auto,
             OPT_devices, OPT_dry_run, OPT_memory, OPT_time_limit, OPT_machine,
             OPT_help6_debugging});
        !idle.empty())
      return usage(idle +
                   " has no use beside --inspect, which compiles nothing");
    return llvm::Error::success();
  }
  if (!isExport && flags.has(OPT_weights))
    return usage("--weights is for --export-onnx: axrun has its own");
  if (!isExport && flags.has(OPT_partial))
    return usage("--partial is for --export-onnx");
  if (isExport && options.weights.empty())
    return usage("--export-onnx needs --weights=FILE: what is to be written "
                 "into the model");
  if (options.isCompiledPlan && !flags.has(OPT_explain))
    return usage("'" + options.input +
                 "' is a compiled plan: --explain tells of it, axrun runs it");
  std::vector<std::string> steps = codegen::stepNames();
  std::string ofModels =
      flags.firstOf({OPT_help1_input, OPT_help2_layout, OPT_help3_training,
                     OPT_dump_tensors, OPT_export_onnx});
  bool isCompiled = flags.isOn(OPT_compile);
  for (const std::string &name : flags.list(OPT_mlir))
    if (ofModels.empty() && !(isCompiled && name == "timing"))
      ofModels = "--mlir-" + name;
  for (const std::string &step : options.dumpAfter) {
    std::string flag = "--dump-after=" + step;
    if (!llvm::is_contained(steps, step))
      ofModels = ofModels.empty() ? flag : ofModels;
    else if (!isCompiled)
      return usage(flag + " is for --compile");
  }
  if (options.isPlan && !ofModels.empty())
    return usage(ofModels + " is for models: '" + options.input +
                 "' is a plan already");
  std::string ofPlans =
      flags.firstOf({OPT_help1_input, OPT_help2_layout, OPT_help3_training,
                     OPT_help6_debugging});
  std::string ofResults = flags.firstOf({OPT_o, OPT_quiet, OPT_help5_looking});
  if (std::string idle = ofPlans.empty() ? ofResults : ofPlans;
      isExport && !idle.empty())
    return usage(idle + " has no use beside --export-onnx");
  std::string ofText = flags.firstOf({OPT_o, OPT_compile, OPT_report});
  if (options.isCompiledPlan && !ofText.empty())
    return usage(ofText + " is for models and plans as text: '" +
                 options.input + "' is compiled");
  if (options.verifyOnly && !ofResults.empty())
    return usage("--verify only checks: " + ofResults +
                 " has no use beside it");
  return llvm::Error::success();
}
} // namespace

llvm::Expected<Options> ax::parseOptions(int argc, char **argv) {
  FlagTable table = driver::axoptFlags();
  auto parsed = table.parse(argc, argv);
  if (!parsed)
    return parsed.takeError();
  const CommandLine &flags = *parsed;
  auto input = flags.onlyInput("MODEL.onnx|PLAN.mlir");
  if (!input)
    return input.takeError();

  Options options;
  options.input = *input;
  llvm::StringRef extension = llvm::sys::path::extension(options.input);
  options.isCompiledPlan = extension == compiledPlanEnding;
  options.isPlan = extension == ".mlir" || options.isCompiledPlan;
  flags.read(OPT_o, options.output);
  flags.read(OPT_export_onnx, options.exportOnnx);
  flags.read(OPT_weights, options.weights);
  flags.read(OPT_partial, options.isPartial);
  flags.read(OPT_save_strategy, options.saveStrategy);
  flags.read(OPT_dry_run, options.numDryRuns);
  flags.read(OPT_verify, options.verifyOnly);
  flags.read(OPT_quiet, options.quiet);
  flags.read(OPT_report, options.report);
  flags.read(OPT_dump_after, options.dumpAfter);
  if (llvm::Error error = readCompile(flags, options))
    return error;
  if (flags.has(OPT_explain))
    options.explain =
        flags.text(OPT_explain) == "json" ? Explain::JSON : Explain::Text;
  if (flags.has(OPT_inspect))
    options.inspect = llvm::StringSwitch<Inspect>(flags.text(OPT_inspect))
                          .Case("all", Inspect::All)
                          .Case("json", Inspect::JSON)
                          .Default(Inspect::Text);
  if (llvm::Error error = checkUse(flags, options))
    return error;
  auto ties = parseTies(flags.list(OPT_tied));
  if (!ties)
    return ties.takeError();
  options.tied = std::move(*ties);
  if (!options.tied.empty() && options.weights.empty())
    return usage("--tied is for --weights");
  options.leaveOut = flags.list(OPT_leave_out);
  if (!options.leaveOut.empty() && options.weights.empty())
    return usage("--leave-out is for --weights");
  if (llvm::Error error = readMLIR(flags))
    return error;
  for (llvm::StringRef text : flags.list(OPT_mlir))
    if (text.consume_front("pass-pipeline-crash-reproducer="))
      options.reproducer = text.str();
  if (llvm::Error error = driver::readModelFlags(
          flags, options.inspect != Inspect::No, options))
    return error;
  return options;
}
