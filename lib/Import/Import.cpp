//===- Import.cpp - ONNX model to ax IR -----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ImportWith.h"

#include "BatchStatistics.h"
#include "Bits.h"
#include "CarriedValues.h"
#include "GraphImporter.h"
#include "InputBinder.h"
#include "KeptValues.h"
#include "Types.h"

#include "ax/Dialect/Indexing.h"
#include "ax/Dialect/Limits.h"
#include "ax/Dialect/PlanAttrs.h"
#include "ax/Dialect/ProgramNames.h"
#include "ax/Dialect/Random.h"
#include "ax/Dialect/SampleDims.h"
#include "ax/Dialect/TrainingAttrs.h"
#include "ax/Interpreter/Elements.h"
#include "ax/Interpreter/FoldedWeights.h"

#include "ax/Support/JoinFirst.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace ax;
using namespace ax::import;

static std::string planName(llvm::StringRef path) {
  std::string name;
  for (char c : llvm::sys::path::stem(path))
    name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name.empty() ? "model" : name;
}

/// Makes weights of single numbers that are parameters. Names the others, if
/// they may be such and nothing says so.
static std::vector<std::string> takeSingleParameters(PreparedModel &model) {
  ShapeMap floats;
  for (const WeightMap *weights : {&model.weights, &model.numbers})
    for (const auto &[name, weight] : *weights)
      if (isFloat(weight.type))
        floats.emplace(name, weight.shape);
  model.roles = findParameters(model.proto, floats, model.kinds);
  for (auto it = model.numbers.begin(); it != model.numbers.end();)
    if (auto number = it++; model.roles.numbers.count(stateName(number->first)))
      model.weights.insert(model.numbers.extract(number));
  return unclearNumbers(model.roles, floats, model.kinds);
}

namespace {
/// The model as a program at the end of a plan, with the states that the plan
/// does not have yet.
struct ProgramEmitter {
  mlir::MLIRContext &context;
  ModelFolder &folder;
  const PreparedModel &model;
  const InputBinder &binder;
  const ImportOptions &options;
  const std::vector<std::string> &keptValues;

  /// What of `keptValues` is not given.
  std::vector<std::string> known = {};

  llvm::Error emit(llvm::StringRef programName, bool evaluationMode,
                   mlir::OpBuilder &builder);
  void warnOfKnown();

private:
  void markSamples(ProgramOp program, size_t numOutputs) const;
  void addKeptValues(const Emitter &b, const Scope &scope,
                     llvm::SmallVector<Value> &results,
                     llvm::SmallVector<mlir::StringAttr> &names);
};
} // namespace

void ProgramEmitter::addKeptValues(const Emitter &b, const Scope &scope,
                                   llvm::SmallVector<Value> &results,
                                   llvm::SmallVector<mlir::StringAttr> &names) {
  for (const std::string &name : keptValues) {
    const Entry *entry = scope.find(name);
    if (!entry || !entry->tensor || b.isConstant(entry->tensor)) {
      known.push_back(name);
      continue;
    }
    results.push_back(entry->tensor);
    names.push_back(mlir::StringAttr::get(&context, name));
  }
}

void ProgramEmitter::warnOfKnown() {
  constexpr size_t shown = 3;
  size_t more = known.size() - std::min(known.size(), shown);
  known.resize(std::min(known.size(), shown));
  if (!known.empty())
    mlir::emitWarning(mlir::UnknownLoc::get(&context))
        << "--dump-tensors: '" << llvm::join(known, "', '") << "'"
        << (more ? " and " + std::to_string(more) + " more" : "")
        << " are no tensors, or known already: the plan does not give them";
}

llvm::Error ProgramEmitter::emit(llvm::StringRef programName,
                                 bool evaluationMode,
                                 mlir::OpBuilder &builder) {
  auto unknown = mlir::UnknownLoc::get(&context);
  // The body is made first: the program's type follows from it.
  mlir::Region region;
  mlir::Block &body = region.emplaceBlock();
  Emitter b(&context, folder, options.training, evaluationMode);
  b.getOpBuilder().setInsertionPointToEnd(&body);
  b.setMaxResults(options.maxResults);
  b.setBatchParts(options.batchParts, options.unbatched);
  GraphImporter importer(b, model);
  Scope scope;
  llvm::SmallVector<mlir::StringAttr> argNames, resultNames;
  for (const ModelInput &input : binder.inputs) {
    auto value = options.constants.find(input.name);
    if (value != options.constants.end()) {
      scope.entries[input.name] = Entry(b.constant(value->second));
      continue;
    }
    auto name = builder.getStringAttr(input.name);
    argNames.push_back(name);
    scope.entries[input.name] = Entry(body.addArgument(
        mlir::RankedTensorType::get(
            input.shape, interpreter::toElementType(input.type, &context)),
        mlir::NameLoc::get(name)));
  }
  for (const auto &[name, weight] : model.weights) {
    Value loaded = b.load(name, weight);
    if (auto kind = model.kinds.find(name); kind != model.kinds.end())
      b.setKind(loaded, kind->second);
    else if (isFloat(weight.type) && !isFloat8(weight.type) &&
             model.roles.quantised.count(stateName(name)))
      b.setKind(loaded, WeightKind::Statistic);
    if (weight.fourBits) {
      loaded = unpackFourBits(b, loaded, *weight.fourBits);
      b.noteFourBits(loaded);
    }
    scope.entries[name] = Entry(loaded);
  }

  const onnx::GraphProto &graph = model.proto.graph();
  std::vector<Entry> outputs;
  if (importer.importInitializers(graph, scope) &&
      importer.importNodes(graph.node(), scope))
    importer.collectOutputs(graph.output(), scope, outputs);
  llvm::SmallVector<Value> results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string &name = graph.output(static_cast<int>(i)).name();
    if (!outputs[i].tensor)
      b.fail(ExitCode::Unsupported, "output '" + name + "' is no tensor");
    results.push_back(outputs[i].tensor);
    resultNames.push_back(builder.getStringAttr(name));
  }
  if (!options.training || programName == predictionProgram)
    addKeptValues(b, scope, results, resultNames);
  size_t numOutputs = results.size();
  CountedOutputs counted = b.addCounts(results, resultNames);
  size_t numCounted = results.size();
  llvm::SmallVector<int64_t> partsOfStatistics;
  b.checkMaxResults();
  if (options.training && !evaluationMode)
    for (const StatisticUpdate &update : b.getUpdates()) {
      results.push_back(update.value);
      resultNames.push_back(builder.getStringAttr(update.state));
      partsOfStatistics.push_back(update.numParts);
    }
  if (llvm::Error error = b.takeFailure()) {
    // Later operations use earlier ones: drop all uses before the block goes.
    body.dropAllReferences();
    body.dropAllDefinedValueUses();
    return error;
  }

  b.getOpBuilder().setInsertionPointToEnd(&body);
  ReturnOp::create(b.getOpBuilder(), unknown, results);
  b.finish(body, builder);
  auto type = builder.getFunctionType(body.getArgumentTypes(),
                                      mlir::ValueRange(results).getTypes());
  auto program = ProgramOp::create(builder, unknown, programName, type,
                                   argNames, resultNames);
  program.getBody().takeBody(region);
  for (auto [i, dim] : counted)
    program.setResultAttr(i, kCountedDim, builder.getI64IntegerAttr(dim));
  for (auto [i, numParts] : llvm::enumerate(partsOfStatistics))
    program.setResultAttr(numCounted + i, kStatistic,
                          builder.getI64IntegerAttr(numParts));
  auto plan = mlir::cast<PlanOp>(program->getParentOp());
  std::set<std::string> parameters;
  for (const auto &[name, tensor] : b.getFolded()) {
    addFolded(plan, name, tensor);
    if (model.roles.isParameter(name, tensor.getType(), tensor.numElements(),
                                tensor.rawBytes()))
      parameters.insert(name);
  }
  addFoldedParameters(plan, std::move(parameters));
  // Only of what is still used: constants in unused branches may be anything.
  for (mlir::Operation &op : program.getBody().front()) {
    if (std::optional<std::string> why = findIndexFault(&op))
      return makeError(ExitCode::BadModel,
                       "node '" + getNodeName(&op) + "': " + *why);
    if (isRandom(&op) && !options.training && !options.evaluationMode)
      return makeError(
          ExitCode::Unsupported,
          "node '" + getNodeName(&op) +
              "': random numbers, also Dropout's, are for training; "
              "axopt --eval takes the model in evaluation mode");
  }
  if (mlir::failed(mlir::verify(program)))
    return makeError(ExitCode::Internal,
                     "the imported program does not verify: " +
                         describeError(b.takeFailure()).message);
  markSamples(program, numOutputs);
  if (llvm::Error error = markCarried(program, options.carried))
    return error;
  return checkBatchParts(program, options.batchParts);
}

/// The same model with other sizes, as another program.
static llvm::Error emitPrefill(mlir::MLIRContext &context, ModelFolder &folder,
                               const ImportOptions &options,
                               mlir::OpBuilder &builder) {
  ImportOptions other = options;
  for (const auto &[name, size] : options.prefill)
    other.dims[name] = size;
  llvm::Expected<PreparedModel> model = prepareModel(folder);
  if (!model)
    return model.takeError();
  takeSingleParameters(*model);
  InputBinder binder(other);
  if (llvm::Error error = binder.run(*model))
    return addContext(std::move(error), "--prefill");
  const std::vector<std::string> noValues;
  return ProgramEmitter{context, folder, *model, binder, other, noValues}.emit(
      prefillProgram, /*evaluationMode=*/false, builder);
}

/// Data flow decides; of a batch of 1 the model's symbols may know more.
void ProgramEmitter::markSamples(ProgramOp program, size_t numOutputs) const {
  llvm::SmallVector<std::optional<int64_t>> dims = findSampleDims(program);
  std::string symbol = binder.getBatchSymbol();
  const auto &outputs = model.proto.graph().output();
  for (size_t i = 0; i < numOutputs; ++i) {
    llvm::SmallVector<int64_t> named;
    int64_t rank = -1;
    if (i < static_cast<size_t>(outputs.size())) {
      const auto &shape =
          outputs[static_cast<int>(i)].type().tensor_type().shape();
      rank = shape.dim_size();
      for (int64_t dim = 0; dim < rank; ++dim)
        if (shape.dim(static_cast<int>(dim)).dim_param() == symbol)
          named.push_back(dim);
    }
    auto type = mlir::cast<mlir::RankedTensorType>(program.getResultTypes()[i]);
    if (program.getBatch() == 1 && !symbol.empty() && !named.empty() &&
        rank == type.getRank())
      dims[i] = named.size() == 1 ? std::optional(named[0]) : std::nullopt;
    // Data, not the batch, decide how many there are of a counted one.
    if (dims[i] && dims[i] != program.getCountedDim(i))
      program.setSampleDim(i, *dims[i]);
  }
}

llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
ax::import::importWith(const ImportOptions &options, llvm::StringRef path,
                       mlir::MLIRContext &context) {
  context.getOrLoadDialect<AxDialect>();
  ModelFolder folder(path, options.mayLackData);
  llvm::Expected<PreparedModel> model = prepareModel(folder);
  if (!model)
    return model.takeError();
  auto withPath = [&](llvm::Error error) {
    return addContext(std::move(error), "'" + path + "'");
  };
  auto unknown = mlir::UnknownLoc::get(&context);
  if (options.training) {
    if (llvm::Error error = setBatchStatistics(
            *model->proto.mutable_graph(), model->opset,
            options.batchStatistics, options.batchParts, unknown))
      return withPath(std::move(error));
  }
  std::vector<std::string> numbers = takeSingleParameters(*model);
  if (options.training && !numbers.empty())
    mlir::emitRemark(unknown)
        << "single numbers are constants, which nothing trains: "
        << joinFirst(numbers);
  InputBinder binder(options);
  if (llvm::Error error = binder.run(*model))
    return withPath(std::move(error));

  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(unknown);
  mlir::OpBuilder builder = mlir::OpBuilder::atBlockEnd(module->getBody());
  auto plan =
      PlanOp::create(builder, unknown, planName(path), PlanOp::firstVersion);
  llvm::SmallString<128> absolute(folder.getPath());
  llvm::sys::fs::make_absolute(absolute);
  llvm::sys::path::remove_dots(absolute, /*remove_dot_dot=*/true);
  plan->setAttr(kModelDir, builder.getStringAttr(absolute));
  if (!options.unbatched.empty())
    plan->setAttr(kUnbatched,
                  builder.getStrArrayAttr(
                      llvm::to_vector_of<llvm::StringRef>(options.unbatched)));
  builder.createBlock(&plan.getBody());

  auto keptValues = findKeptValues(*model, options.keptValues);
  if (!keptValues)
    return withPath(keptValues.takeError());
  ProgramEmitter emitter{context, folder, *model, binder, options, *keptValues};
  llvm::Error error =
      options.evaluationMode
          ? llvm::Error::success()
          : emitter.emit("main", /*evaluationMode=*/false, builder);
  if (!error && options.training)
    error = emitter.emit(evaluationProgram, /*evaluationMode=*/true, builder);
  if (!error && (options.training || options.evaluationMode))
    error = emitter.emit(predictionProgram, /*evaluationMode=*/true, builder);
  if (!error && !options.prefill.empty())
    error = emitPrefill(context, folder, options, builder);
  if (error)
    return withPath(std::move(error));
  emitter.warnOfKnown();
  auto files = fingerprints(plan, folder);
  if (!files)
    return withPath(files.takeError());
  if (!files->empty())
    plan->setAttr(kFiles, *files);
  return module;
}
