//===- Inspect.cpp - What there is in a model -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Inspect/Inspect.h"

#include "Sizes.h"

#include "ax/Compile/Compile.h"
#include "ax/Cost/OpCost.h"
#include "ax/Dialect/Actions.h"
#include "ax/Interpreter/Elements.h"
#include "ax/Passes/Passes.h"
#include "ax/Support/Error.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace ax;
using namespace ax::inspect;

namespace {

/// What is remarked is kept, each text once.
class Remarks {
public:
  explicit Remarks(MLIRContext &context)
      : handler(&context, [this](Diagnostic &diagnostic) {
          std::string text = diagnostic.str();
          if (diagnostic.getSeverity() != DiagnosticSeverity::Error &&
              !llvm::is_contained(notes, text))
            notes.push_back(text);
          return success();
        }) {}

  std::vector<std::string> notes;

private:
  ScopedDiagnosticHandler handler;
};

/// Sums over some operations.
struct Sums {
  int64_t operations = 0, layers = 0, weightBytes = 0;
  double flops = 0;
  Operation *first = nullptr, *last = nullptr;
  llvm::DenseSet<Attribute> states;

  void add(Operation *op, const sharding::Mesh &mesh) {
    ++operations;
    first = first ? first : op;
    last = op;
    if (auto layer = plan::findLayer(op, mesh)) {
      ++layers;
      flops += layer->wholeFlops;
    }
    for (Value operand : op->getOperands())
      if (auto load = operand.getDefiningOp<LoadOp>())
        if (states.insert(load.getStateAttr()).second)
          weightBytes += cost::localBytes(tensorType(load.getResult()), mesh);
  }
};

class Inspector {
public:
  Inspector(const import::ImportOptions &options, const Strategy &strategy,
            MLIRContext &context, Inspection &result)
      : options(options), strategy(strategy), context(context), result(result) {
  }

  llvm::Error run();

private:
  /// Null, and a problem, when the model cannot be imported.
  llvm::Expected<OwningOpRef<ModuleOp>> import();
  llvm::Error collect(PlanOp plan);
  void collectWeights(ArrayRef<WeightChoice> choices);
  void collectProgram(ProgramOp program);

  import::ImportOptions options;
  const Strategy &strategy;
  MLIRContext &context;
  Inspection &result;
};

} // namespace

llvm::Expected<OwningOpRef<ModuleOp>> Inspector::import() {
  const import::ImportOptions given = options;
  bool hasUnranked =
      llvm::any_of(result.model.inputs,
                   [](const import::ModelPort &input) { return !input.dims; });
  std::string problem;
  // Those that the first problem has.
  std::map<std::string, int64_t> sizes;
  // Sequences of words, images of small and of larger models.
  for (int64_t size : {16, 64, 224}) {
    options = given;
    assumeSizes(result.model, size, options, result.assumed);
    result.sizes = options.dims;
    auto module = import::importModel(result.path, options, context);
    if (module)
      return module;
    ErrorDescription why = describeError(module.takeError());
    bool isOfFlags = why.code == ExitCode::Usage && !hasUnranked;
    if (isOfFlags || why.code == ExitCode::Internal)
      return makeError(why.code, why.message);
    if (problem.empty()) {
      problem = why.message;
      sizes = result.sizes;
    }
    if (result.assumed.empty() || why.code == ExitCode::Usage)
      break;
  }
  result.problems.push_back(problem);
  result.sizes = sizes;
  return OwningOpRef<ModuleOp>();
}

void Inspector::collectWeights(ArrayRef<WeightChoice> choices) {
  llvm::StringMap<const WeightChoice *> left;
  for (const WeightChoice &choice : choices)
    left[StateOp(choice.state).getSymName()] = &choice;
  auto decide = [&](Weight &weight, const WeightChoice &choice) {
    weight.isTrained = choice.isTrained;
    weight.why = choice.why.str();
    left.erase(weight.name);
  };
  for (const import::StoredWeight &stored : result.model.weights) {
    Weight &weight = result.weights.emplace_back(Weight{stored, false, ""});
    if (auto choice = left.find(weight.name); choice != left.end())
      decide(weight, *choice->second);
    else
      weight.why =
          isFloat(weight.type) ? "nothing uses it" : "computed into constants";
  }
  // Single numbers that layers have as parameters.
  for (const WeightChoice &choice : choices)
    if (StateOp state = choice.state; left.count(state.getSymName())) {
      RankedTensorType type = state.getTensorType();
      Weight &weight = result.weights.emplace_back();
      weight.name = state.getSymName().str();
      weight.type = *interpreter::toDType(type.getElementType());
      weight.shape = type.getShape().vec();
      weight.file = state.getFile().str();
      weight.offset = state.getOffset();
      weight.bytes = state.getLength();
      decide(weight, choice);
    }
}

/// The outermost numbered part of a node's or module's name:
/// `encoder.layer.0.attention/node_3`: `encoder.layer.0`.
static StringRef blockOf(Operation *op) {
  for (StringRef name : getNodeNames(op))
    for (size_t at = 0; at < name.size();) {
      size_t end = std::min(name.find_first_of("./", at), name.size());
      StringRef part = name.slice(at, end);
      if (!part.empty() && llvm::all_of(part, llvm::isDigit))
        return name.take_front(end);
      at = end + 1;
    }
  return "";
}

void Inspector::collectProgram(ProgramOp program) {
  sharding::Mesh mesh;
  llvm::MapVector<StringRef, Sums> blocks;
  std::map<int64_t, Sums> stages;
  Operation *last = nullptr;
  for (Operation &op : program.getBody().front().without_terminator()) {
    if (isSource(&op))
      continue;
    last = &op;
    if (auto layer = plan::findLayer(&op, mesh)) {
      Layer &made = result.layers.emplace_back();
      made.kind = layer->kind;
      made.node = layer->node;
      for (const plan::NamedSplit &split : layer->splits)
        made.dims.emplace_back(split.name, split.size);
      made.flops = layer->wholeFlops;
    }
    if (StringRef block = blockOf(&op); !block.empty())
      blocks[block].add(&op, mesh);
    if (auto stage = op.getAttrOfType<IntegerAttr>(kStage))
      stages[stage.getInt()].add(&op, mesh);
  }
  for (auto &[name, sums] : blocks)
    result.blocks.push_back(
        {name.str(), sums.layers, sums.weightBytes, sums.flops,
         sums.last == last ? "" : getNodeName(sums.last).str()});
  if (stages.size() > 1)
    for (auto &[number, sums] : stages)
      result.stages.push_back({sums.operations, sums.layers, sums.weightBytes,
                               sums.flops, getNodeName(sums.first).str(),
                               getNodeName(sums.last).str()});
}

llvm::Error Inspector::collect(PlanOp plan) {
  const Training none;
  const Training &training = strategy.training.value_or(none);
  // On a copy, of which gradients know the way through quantised numbers.
  OwningOpRef<ModuleOp> trained = plan->getParentOfType<ModuleOp>().clone();
  PassManager manager(&context);
  addCandidatesPhase(manager, training);
  manager.nest<PlanOp>().addPass(createStraightThrough());
  if (failed(manager.run(*trained)))
    return makeError(ExitCode::Internal, "ax-straight-through failed");
  auto choices = chooseTrainable(*trained->getOps<PlanOp>().begin(),
                                 training.trainable, training.frozen);
  if (!choices)
    return choices.takeError();
  collectWeights(*choices);
  collectProgram(*plan.getBody().getOps<ProgramOp>().begin());
  auto matches = matchPatterns(plan, strategy);
  if (!matches)
    return matches.takeError();
  result.matches = std::move(*matches);
  return llvm::Error::success();
}

llvm::Error Inspector::run() {
  options.mayLackData = true;
  // Weights are told apart where they are to change.
  options.training = true;
  Remarks remarks(context);
  auto module = import();
  if (!module)
    return module.takeError();
  if (*module) {
    CompileOptions stages;
    stages.strategy = strategy;
    stages.last = "stage";
    if (llvm::Error error = compile(**module, stages))
      return error;
    if (llvm::Error error = collect(*(**module).getOps<PlanOp>().begin()))
      return error;
  } else {
    for (const import::StoredWeight &stored : result.model.weights)
      result.weights.push_back(Weight{stored, std::nullopt, ""});
  }
  result.notes = std::move(remarks.notes);
  return llvm::Error::success();
}

llvm::Expected<Inspection>
inspect::inspectModel(llvm::StringRef path,
                      const import::ImportOptions &options,
                      const Strategy &strategy, MLIRContext &context) {
  auto model = import::describeModel(path);
  if (!model)
    return model.takeError();
  Inspection result;
  result.path = path.str();
  result.model = std::move(*model);
  if (llvm::Error error = Inspector(options, strategy, context, result).run())
    return error;
  return result;
}
