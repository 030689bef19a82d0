//===- main.cpp - axopt: ONNX in, plan out --------------------------------===//
#include "Options.h"
#include "ax/Codegen/Codegen.h"
#include "ax/Dialect/Ax.h"
#include "ax/Dialect/Evaluation.h"
#include "ax/Dialect/Random.h"
#include "ax/Import/Export.h"
#include "ax/Inspect/Inspect.h"
#include "ax/Passes/Passes.h"
#include "ax/Plan/Plan.h"
#include "ax/Runtime/Checkpoint.h"
#include "ax/Support/AtomicFile.h"
#include "ax/Support/Error.h"
#include "ax/Support/MappedFile.h"
#include "ax/Support/OutputCheck.h"
#include "ax/Support/Process.h"
#include "ax/Support/Stack.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"

#include <map>

using namespace ax;
using mlir::ModuleOp;
using mlir::OwningOpRef;

namespace {

/// Diagnostics of passes as the tool's own messages; the text of errors is
/// kept for the error that ends the tool.
class Diagnostics {
public:
  /// Notes belong to the summary.
  Diagnostics(mlir::MLIRContext &context, bool notes)
      : handler(&context, [this, notes](mlir::Diagnostic &diagnostic) {
          std::string text = diagnostic.str();
          switch (diagnostic.getSeverity()) {
          case mlir::DiagnosticSeverity::Error:
            errors += (errors.empty() ? "" : "\n") + text;
            break;
          case mlir::DiagnosticSeverity::Warning:
            addWarning(text);
            break;
          default:
            if (notes)
              llvm::errs() << "axopt: note: " << text << '\n';
          }
          return mlir::success();
        }) {}

  /// What was said of several nodes, or by several passes, once.
  void showWarnings() {
    for (const auto &[what, nodes] : warnings) {
      llvm::errs() << "axopt: warning: " << nodes.front;
      if (nodes.others)
        llvm::errs() << " and " << nodes.others << " more";
      llvm::errs() << (nodes.front.empty() ? "" : ": ") << what << '\n';
    }
  }

  llvm::Error take(ExitCode code) {
    return makeError(code, errors.empty() ? "failed without saying why"
                                          : std::exchange(errors, {}));
  }

private:
  /// `'NODE': what`, or something else.
  void addWarning(llvm::StringRef text) {
    auto [node, what] = text.split("': ");
    bool isOfNode = text.starts_with("'") && !what.empty();
    auto [known, isNew] = warnings.try_emplace(
        (isOfNode ? what : text).str(),
        Nodes{isOfNode ? node.str() + "'" : std::string(), 0});
    known->second.others += !isNew && isOfNode;
  }

  struct Nodes {
    std::string front;
    int64_t others = 0;
  };
  llvm::MapVector<std::string, Nodes, std::map<std::string, unsigned>> warnings;
  std::string errors;
  mlir::ScopedDiagnosticHandler handler;
};

/// Of a whole plan. A plan that cannot run has no memory to tell of: axrun says
/// why.
plan::StageMemory predictMemory(ModuleOp module) {
  plan::StageMemory memory;
  for (auto plan : module.getOps<PlanOp>())
    for (auto program : plan.getBody().getOps<ProgramOp>()) {
      auto ranks = codegen::predictMemory(program);
      if (!ranks) {
        llvm::consumeError(ranks.takeError());
        continue;
      }
      for (auto stage : program.getBody().front().getOps<StageOp>())
        memory[stage] = (*ranks)[stage.getOn()];
    }
  return memory;
}

/// Bytes of the rank that needs most, of a plan that is to go through the
/// phases after Checkpoint.
mlir::FailureOr<int64_t> predictPeak(PlanOp plan, const Strategy &strategy) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(plan.getLoc());
  module->push_back(plan.clone());
  mlir::PassManager manager(plan.getContext());
  addOptimizePhase(manager);
  addPipelinePhase(manager, strategy);
  if (failed(manager.run(*module)))
    return mlir::failure();
  int64_t peak = 0;
  for (auto trial : module->getOps<PlanOp>())
    for (auto program : trial.getBody().getOps<ProgramOp>()) {
      auto ranks = codegen::predictMemory(program);
      if (!ranks)
        return program.emitError(describeError(ranks.takeError()).message);
      for (const cost::RankMemory &memory : *ranks)
        peak = std::max(peak, memory.total());
    }
  return peak;
}

/// Text that axopt-opt goes on with: locations are the names of ONNX nodes.
void printDump(llvm::StringRef phase, ModuleOp module) {
  llvm::errs() << "// after " << phase << '\n';
  module.print(llvm::errs(),
               mlir::OpPrintingFlags().enableDebugInfo().useLocalScope());
  llvm::errs() << '\n';
}

struct Phase {
  llvm::StringRef name;
  /// Of a failure: the strategy does not fit, or a fault of ours.
  ExitCode code;
  std::function<void(mlir::OpPassManager &)> add;
};

/// Training mode has its own random numbers, which evaluation mode lacks; a
/// model may ask for others.
llvm::Error checkNotRandom(ModuleOp module) {
  mlir::Operation *random = nullptr;
  module.walk([&](mlir::Operation *op) {
    if (!random && isRandom(op))
      random = op;
  });
  return random
             ? makeError(ExitCode::Unsupported,
                         "node '" + getNodeName(random) +
                             "': the model takes random numbers in "
                             "evaluation mode, too, which only axopt --train "
                             "has")
             : llvm::Error::success();
}

/// A loss may have added inputs.
llvm::Error checkUnbatched(ModuleOp module) {
  for (auto plan : module.getOps<PlanOp>()) {
    auto names = plan->getAttrOfType<mlir::ArrayAttr>(kUnbatched);
    if (!names)
      continue;
    llvm::SetVector<llvm::StringRef> inputs;
    for (auto program : plan.getBody().getOps<ProgramOp>())
      for (unsigned i = 0, e = program.getNumArguments(); i < e; ++i)
        inputs.insert(program.getArgName(i));
    for (auto name : names.getAsValueRange<mlir::StringAttr>())
      if (!inputs.contains(name))
        return makeError(ExitCode::Usage, "--unbatched=" + name +
                                              ": there is no such input, but " +
                                              llvm::join(inputs, ", "));
  }
  return llvm::Error::success();
}

llvm::Error compile(ModuleOp module, const Options &options,
                    Diagnostics &diagnostics) {
  const Strategy &strategy = options.strategy;
  const Phase phases[] = {
      {"normalize", ExitCode::Internal, addNormalizePhase},
      {"raise", ExitCode::Internal, addRaisePhase},
      {"stage", ExitCode::Usage,
       [&](auto &manager) { addStagePhase(manager, strategy); }},
      {"train", ExitCode::Usage,
       [&](auto &manager) {
         if (options.training)
           addTrainPhase(manager, *options.training);
       }},
      {"shard", ExitCode::Usage,
       [&](auto &manager) {
         addShardPhase(manager, strategy, options.strict);
       }},
      {"checkpoint", ExitCode::Usage,
       [&](auto &manager) {
         if (options.training)
           addCheckpointPhase(manager, *options.training, [&](PlanOp plan) {
             return predictPeak(plan, strategy);
           });
       }},
      {"optimize", ExitCode::Internal, addOptimizePhase},
      {"pipeline", ExitCode::Internal,
       [&](auto &manager) { addPipelinePhase(manager, strategy); }},
  };
  auto dump = [&](llvm::StringRef phase) {
    if (llvm::is_contained(options.dumpAfter, phase))
      printDump(phase, module);
  };
  dump("import");
  mlir::DefaultTimingManager timing;
  mlir::applyDefaultTimingManagerCLOptions(timing);
  mlir::TimingScope scope = timing.getRootScope();
  for (const Phase &phase : phases) {
    mlir::PassManager manager(module.getContext());
    if (failed(mlir::applyPassManagerCLOptions(manager)))
      return diagnostics.take(ExitCode::Usage);
    mlir::TimingScope phaseScope = scope.nest(phase.name);
    manager.enableTiming(phaseScope);
    phase.add(manager);
    if (failed(manager.run(module)))
      return diagnostics.take(phase.code);
    dump(phase.name);
    // What is dropped at random is known by now.
    if (phase.name == "train")
      if (llvm::Error error = checkUnbatched(module))
        return error;
    if (phase.name == "raise" && options.import.evaluation)
      if (llvm::Error error = checkNotRandom(module))
        return error;
  }
  return llvm::Error::success();
}

/// `inputs` are the model or plan, and what it is made of; `constants` those of
/// the plan.
llvm::Error checkOutputs(const Options &options,
                         llvm::ArrayRef<std::string> inputs,
                         const std::string &constants = "") {
  OutputCheck files;
  // A plan is read as a whole, with its constants, before it is written.
  bool isReplaced = options.isPlan && options.output != "-" &&
                    llvm::sys::fs::equivalent(options.input, options.output);
  for (const std::string &input : inputs)
    files.reads(input,
                isReplaced && (input == options.input || input == constants)
                    ? "-o"
                    : "");
  for (const std::string &input : options.otherInputs)
    files.reads(input);
  files.reads(options.strategyFile, "--save-strategy");
  for (const std::string &file : rt::filesOfWeights(options.weights))
    files.reads(file);
  files.writes("--report", options.report);
  files.writes("--save-strategy", options.saveStrategy);
  files.writes("--mlir-pass-pipeline-crash-reproducer", options.reproducer);
  if (options.exportOnnx.empty()) {
    if (!options.verifyOnly) {
      files.writes("-o", options.output);
      if (auto beside = plan::constantsFileFor(options.output))
        files.writes("-o", *beside);
    }
  } else {
    files.writes("--export-onnx", options.exportOnnx);
    files.writes("--export-onnx", import::dataFileOf(options.exportOnnx));
  }
  return files.check();
}

llvm::Expected<OwningOpRef<ModuleOp>> load(const Options &options,
                                           mlir::MLIRContext &context,
                                           Diagnostics &diagnostics) {
  if (options.isPlan) {
    auto module = plan::readPlan(options.input, context);
    if (!module)
      return module.takeError();
    PlanOp plan = *(**module).getOps<PlanOp>().begin();
    if (llvm::Error error =
            checkOutputs(options,
                         plan::filesOf(plan, options.input,
                                       plan::modelFolder(plan, options.input)),
                         plan::constantsFile(plan, options.input)))
      return error;
    return module;
  }
  auto module = import::importModel(options.input, options.import, context);
  if (!module)
    return module.takeError();
  llvm::Error error = compile(**module, options, diagnostics);
  diagnostics.showWarnings();
  if (error)
    return addContext(std::move(error), options.input);
  return std::move(*module);
}

llvm::Error exportOnnx(const Options &options) {
  auto warn = [](const std::string &text) {
    llvm::errs() << "axopt: warning: " << text << '\n';
  };
  auto source = rt::readWeights(options.weights, warn);
  if (!source)
    return source.takeError();
  import::ExportWeights weights;
  weights.given.path = options.weights;
  for (auto &[name, tensor] : source->tensors)
    weights.given.tensors.emplace(name, std::move(tensor));
  weights.given.ties = options.tied;
  weights.given.isCheckpoint = !source->weights.empty();
  weights.given.warn = warn;
  weights.required = source->weights;
  weights.frozen = source->frozen;
  // A checkpoint has all that its plan knows: the rest are constants.
  weights.isPartial = options.isPartial || weights.given.isCheckpoint;
  return import::exportModel(options.input, options.exportOnnx,
                             std::move(weights));
}

llvm::Error inspect(const Options &options, mlir::MLIRContext &context) {
  auto inspection = inspect::inspectModel(options.input, options.import,
                                          options.strategy, context);
  if (!inspection)
    return inspection.takeError();
  if (options.inspect == Inspect::JSON)
    inspect::printJSON(*inspection, llvm::outs());
  else
    inspect::print(*inspection, options.inspect == Inspect::All, llvm::outs());
  return checkMappedFiles();
}

llvm::Error run(const Options &options) {
  // What a plan is made of is known when it is read.
  if (!options.isPlan)
    if (llvm::Error error =
            checkOutputs(options, import::filesOfModel(options.input)))
      return error;
  mlir::MLIRContext context;
  context.loadDialect<AxDialect>();
  if (options.inspect != Inspect::No)
    return inspect(options, context);
  Diagnostics diagnostics(context, !options.quiet);
  if (!options.saveStrategy.empty())
    if (llvm::Error error = writeFileAtomically(options.saveStrategy,
                                                options.strategy.toYAML()))
      return error;
  if (!options.exportOnnx.empty())
    return exportOnnx(options);
  auto module = load(options, context, diagnostics);
  if (!module)
    return module.takeError();
  // What comes out is checked like what comes in.
  if (llvm::Error error = plan::verifyPlan(**module))
    return error;
  if (options.verifyOnly) {
    llvm::outs() << options.input << ": verified\n";
    return llvm::Error::success();
  }
  plan::StageMemory memory;
  if (!options.quiet || !options.report.empty())
    memory = predictMemory(**module);
  if (!options.quiet)
    plan::summarise(**module, llvm::errs(), memory);
  if (!options.report.empty())
    if (llvm::Error error = writeFileAtomically(
            options.report, plan::reportJSON(**module, memory)))
      return error;
  if (options.explain == Explain::Text)
    plan::explain(**module, llvm::outs());
  else if (options.explain == Explain::JSON)
    llvm::outs() << plan::explainJSON(**module) << '\n';
  if (llvm::Error error = checkMappedFiles())
    return error;
  if (options.explain != Explain::No && options.output == "-")
    return llvm::Error::success();
  return plan::writePlan(**module, options.output);
}

} // namespace

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
