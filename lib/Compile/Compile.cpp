//===- Compile.cpp - From an imported model to a plan ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Compile/Compile.h"

#include "PhaseList.h"

#include "ax/Codegen/Codegen.h"
#include "ax/Dialect/PlanAttrs.h"
#include "ax/Dialect/ProgramNames.h"
#include "ax/Dialect/Random.h"
#include "ax/Passes/Passes.h"
#include "ax/Support/Error.h"
#include "ax/Support/HostTensor.h"
#include "ax/Support/JoinFirst.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace ax;
using mlir::ModuleOp;

namespace {

/// The text of errors while it lives; warnings and notes go to whom they went
/// before.
class Errors {
public:
  explicit Errors(mlir::MLIRContext &context)
      : handler(&context, [this](mlir::Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() != mlir::DiagnosticSeverity::Error)
            return mlir::failure();
          text += (text.empty() ? "" : "\n") + diagnostic.str();
          isUnsupportable |= isUnsupported(diagnostic);
          return mlir::success();
        }) {}

  llvm::Error take(ExitCode code) {
    return makeError(isUnsupportable ? ExitCode::Unsupported : code,
                     text.empty() ? "failed without saying why"
                                  : std::exchange(text, {}));
  }

private:
  std::string text;
  /// One of them is of something that axopt cannot do, whatever the strategy.
  bool isUnsupportable = false;
  mlir::ScopedDiagnosticHandler handler;
};

/// Tells what steps of a phase have left.
class StepWatcher : public mlir::PassInstrumentation {
public:
  StepWatcher(llvm::ArrayRef<llvm::StringRef> steps,
              llvm::function_ref<void(llvm::StringRef)> done)
      : steps(steps), done(done) {}

  void runAfterPass(mlir::Pass *pass, mlir::Operation *) override {
    llvm::StringRef step = pass->getArgument();
    if (step.consume_front("ax-") && llvm::is_contained(steps, step))
      done(step);
  }

private:
  llvm::ArrayRef<llvm::StringRef> steps;
  llvm::function_ref<void(llvm::StringRef)> done;
};

} // namespace

/// Training mode has its own random numbers, which evaluation mode lacks; a
/// model may ask for others.
static llvm::Error checkNotRandom(ModuleOp module) {
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
static llvm::Error checkUnbatched(ModuleOp module) {
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

/// An empty batch is a slip more often than meant; a decoder's first step has a
/// past of nothing for each of its layers.
static void warnOfNothing(ProgramOp program) {
  std::vector<std::string> empty;
  for (auto [i, type] : llvm::enumerate(program.getArgumentTypes())) {
    auto tensor = mlir::cast<mlir::RankedTensorType>(type);
    if (tensor.getNumElements() == 0)
      empty.push_back("'" + program.getArgName(i).str() + "' (" +
                      shapeToString(tensor.getShape()) + ")");
  }
  if (empty.empty())
    return;
  bool isOne = empty.size() == 1;
  program.emitWarning(isOne ? "input " : "inputs ")
      << joinFirst(empty) << (isOne ? " has" : " have")
      << " no elements: what is made of " << (isOne ? "it" : "them")
      << " has none, or is a sum of nothing";
}

/// Bytes of the rank that needs most, of a plan that is to go through the
/// phases after `recompute`.
static mlir::FailureOr<int64_t> predictPeak(PlanOp plan,
                                            const Strategy &strategy) {
  mlir::OwningOpRef<ModuleOp> module = ModuleOp::create(plan.getLoc());
  module->push_back(plan.clone());
  CompileOptions rest;
  rest.strategy = strategy;
  rest.first = "optimize";
  mlir::PassManager manager(plan.getContext());
  // What this makes is thrown away, and the same phases are verified when the
  // plan itself goes through them.
  manager.enableVerifier(false);
  for (const Phase &phase : phasesFor(rest))
    phase.add(manager);
  if (failed(manager.run(*module)))
    return mlir::failure();
  int64_t peak = 0;
  for (auto trial : module->getOps<PlanOp>())
    for (auto program : trial.getBody().getOps<ProgramOp>()) {
      auto lists = codegen::predict(program);
      if (!lists)
        return program.emitError(describeError(lists.takeError()).message);
      for (const auto &[list, prediction] : *lists)
        peak = std::max(peak, prediction.memory.total());
    }
  return peak;
}

std::vector<Phase> ax::phasesFor(const CompileOptions &options) {
  const Strategy &strategy = options.strategy;
  const Training *training = strategy.training ? &*strategy.training : nullptr;
  std::vector<Phase> phases = {
      {"normalize", ExitCode::Internal,
       [=](auto &manager) {
         if (training)
           addCandidatesPhase(manager, *training);
         addNormalizePhase(manager);
       }},
      {"raise", ExitCode::Internal, addRaisePhase},
      {"stage", ExitCode::Usage,
       [&](auto &manager) { addStagePhase(manager, strategy); }},
      {"train", ExitCode::Usage,
       [&strategy, training](auto &manager) {
         if (training)
           addTrainPhase(manager, *training, strategy.precision);
         else
           addInferencePhase(manager, strategy.precision);
       },
       checkUnbatched},
      {"shard",
       ExitCode::Usage,
       [&](auto &manager) { addShardPhase(manager, strategy, options.strict); },
       nullptr,
       {"decompose-split", "recipe", "user-pins", "update-pins", "propagate",
        "insert-reshards"}},
      {"recompute", ExitCode::Usage,
       [&strategy, training](auto &manager) {
         if (training)
           addRecomputePhase(manager, *training, [strategy](PlanOp plan) {
             return predictPeak(plan, strategy);
           });
       }},
      {"optimize", ExitCode::Internal, addOptimizePhase},
      {"pipeline", ExitCode::Internal,
       [&](auto &manager) { addPipelinePhase(manager, strategy); }},
  };
  // What is dropped at random is known when it is raised.
  if (options.evaluationMode)
    phases[1].check = checkNotRandom;
  auto find = [&](llvm::StringRef name) {
    auto found = llvm::find_if(
        phases, [&](const Phase &phase) { return phase.name == name; });
    assert(found != phases.end() && "there is no such phase");
    return found;
  };
  if (!options.last.empty())
    phases.erase(std::next(find(options.last)), phases.end());
  if (!options.first.empty())
    phases.erase(phases.begin(), find(options.first));
  return phases;
}

llvm::Error ax::compile(ModuleOp module, const CompileOptions &options) {
  Errors errors(*module.getContext());
  auto done = [&](llvm::StringRef phase) {
    if (options.after)
      options.after(phase, module);
  };
  done("import");
  if (options.machine)
    for (auto plan : module.getOps<PlanOp>())
      plan->setAttr(kMachine,
                    cost::toAttribute(*options.machine, module.getContext()));
  for (auto plan : module.getOps<PlanOp>())
    for (auto program : plan.getBody().getOps<ProgramOp>())
      warnOfNothing(program);
  mlir::TimingScope scope =
      options.timing ? options.timing->getRootScope() : mlir::TimingScope();
  for (const Phase &phase : phasesFor(options)) {
    mlir::PassManager manager(module.getContext());
    if (options.configure && failed(options.configure(manager)))
      return errors.take(ExitCode::Usage);
    mlir::TimingScope phaseScope = scope.nest(phase.name);
    manager.enableTiming(phaseScope);
    if (!phase.steps.empty())
      manager.addInstrumentation(
          std::make_unique<StepWatcher>(phase.steps, done));
    phase.add(manager);
    if (failed(manager.run(module)))
      return errors.take(phase.code);
    done(phase.name);
    if (phase.check)
      if (llvm::Error error = phase.check(module))
        return error;
  }
  return llvm::Error::success();
}

cost::Predictions ax::predict(ModuleOp module) {
  Errors untold(*module.getContext());
  cost::Predictions all;
  for (auto plan : module.getOps<PlanOp>())
    for (auto program : plan.getBody().getOps<ProgramOp>()) {
      auto lists = codegen::predict(program);
      if (lists)
        all.insert(lists->begin(), lists->end());
      else
        llvm::consumeError(lists.takeError());
    }
  return all;
}
