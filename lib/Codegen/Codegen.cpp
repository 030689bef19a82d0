//===- Codegen.cpp - From a plan's program to commands --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Codegen/Codegen.h"

#include "EightBitProducts.h"
#include "IndexedInputs.h"
#include "StageBuilder.h"
#include "ax/Cost/OpCost.h"
#include "ax/Dialect/Actions.h"
#include "ax/Dialect/MeshAxes.h"
#include "ax/Dialect/PlanAttrs.h"
#include "ax/Dialect/ProgramNames.h"
#include "ax/Dialect/TrainingAttrs.h"
#include "ax/Interpreter/Elements.h"
#include "ax/Interpreter/FoldedWeights.h"
#include "ax/Support/Error.h"
#include "ax/Support/JoinFirst.h"

using namespace mlir;

namespace ax::codegen {

static std::vector<int64_t> toVector(ArrayRef<int64_t> values) {
  return {values.begin(), values.end()};
}

/// Every tensor has an element type that memory can hold.
static llvm::Error checkElementTypes(Operation *root) {
  Operation *culprit = nullptr;
  Type element;
  root->walk([&](Operation *op) {
    SmallVector<Type> types(op->getResultTypes());
    for (Region &region : op->getRegions())
      llvm::append_range(types, region.getArgumentTypes());
    for (Type type : types)
      if (auto tensor = dyn_cast<RankedTensorType>(type);
          tensor && !culprit &&
          !interpreter::toDType(tensor.getElementType())) {
        culprit = op;
        element = tensor.getElementType();
      }
  });
  if (!culprit)
    return llvm::Error::success();
  std::string text, node = getNodeName(culprit).str();
  llvm::raw_string_ostream(text) << element;
  return makeError(ExitCode::Unsupported,
                   culprit->getName().getStringRef() +
                       (node.empty() ? "" : " of node '" + node + "'") +
                       " has elements of type " + text);
}

static std::string nameOr(StringRef name, const char *kind, size_t number) {
  return name.empty() ? kind + std::to_string(number) : name.str();
}

namespace {

class ProgramBuilder {
public:
  ProgramBuilder(ProgramOp program, const Options &options)
      : program(program), options(options),
        tables(result, options.target.getGpu() != nullptr) {
    program->getParentOfType<PlanOp>().walk(
        [&](StoreOp store) { stored.insert(store.getStateAttr().getAttr()); });
  }

  llvm::Expected<rt::Program> build() {
    result.name = program.getSymName().str();
    if (auto steps = program->getAttrOfType<IntegerAttr>(kLearningRateSteps))
      result.learningRateSteps = steps.getInt();
    if (auto optimizer = program->getAttrOfType<StringAttr>(kOptimizer))
      result.optimizer = optimizer.str();
    if (auto folded =
            program->getParentOfType<PlanOp>()->getAttrOfType<DictionaryAttr>(
                kFolded))
      for (NamedAttribute entry : folded)
        result.folded[entry.getName().str()] =
            cast<StringAttr>(entry.getValue()).str();
    for (StringRef name :
         foldedParametersOf(program->getParentOfType<PlanOp>()))
      result.foldedParameters.push_back(name.str());
    result.mesh = getMesh(program);
    if (llvm::Error error = checkElementTypes(program))
      return error;
    addPorts();
    addStages();
    addTransfers();
    auto lowered = lower(program, options);
    if (!lowered)
      return lowered.takeError();
    local = std::move(*lowered);
    auto localProgram = *local->getBody().getOps<LocalProgramOp>().begin();
    for (auto [stage, ops] :
         llvm::zip_equal(stages, localProgram.getBody().getOps<LocalStageOp>()))
      sources.push_back(prepare(stage, ops));
    tellWidened();
    if (options.allWeights)
      addUnusedWeights();
    if (llvm::Error error = compileKernels())
      return error;
    for (auto [source, stage] : llvm::zip_equal(sources, stages))
      if (llvm::Error error =
              buildStage(source, tables, result.stages[stage.getOn()]))
        return addContext(std::move(error), "stage " + stage.getSymName());
    addSchedule();
    return std::move(result);
  }

private:
  /// What was multiplied in eight bits on another card, or in another shape.
  void tellWidened() {
    SmallVector<std::string> names;
    local->walk([&](Operation *op) {
      if (op->hasAttr(kWidened))
        names.push_back(getNodeName(op).str());
    });
    if (names.empty() || !options.onWidened)
      return;
    const GpuTarget &target = *options.target.getGpu();
    options.onWidened(
        "factors of eight bits are multiplied as bf16, which gives the same: " +
        (hasFloat8Products(target)
             ? "cuBLASLt has no products in eight bits of such shapes: "
             : target.architecture() + " has no products in eight bits: ") +
        joinFirst(names));
  }

  rt::Port portOf(Type type, std::string name) {
    auto tensor = cast<RankedTensorType>(type);
    rt::Port port;
    port.name = std::move(name);
    port.dtype = *interpreter::toDType(tensor.getElementType());
    port.shape = toVector(tensor.getShape());
    port.layout = getLayout(tensor, result.mesh);
    return port;
  }

  std::optional<rt::Labels> labelsOf(unsigned input) {
    auto attr = program.getArgAttrOfType<DictionaryAttr>(input, kLabels);
    if (!attr)
      return std::nullopt;
    auto number = [&](StringRef name) {
      return attr.getAs<IntegerAttr>(name).getInt();
    };
    return rt::Labels{number("classes"), number("ignore_index"),
                      number("shift")};
  }

  std::optional<rt::Role> roleOf(unsigned output) {
    std::optional<ResultRole> role = program.getRole(output);
    if (!role)
      return std::nullopt;
    switch (*role) {
    case ResultRole::loss:
      return rt::Role::Loss;
    case ResultRole::gradient_norm:
      return rt::Role::GradientNorm;
    case ResultRole::learning_rate:
      return rt::Role::LearningRate;
    case ResultRole::loss_scale:
      return rt::Role::LossScale;
    case ResultRole::loss_sum:
      return rt::Role::LossSum;
    case ResultRole::loss_count:
      return rt::Role::LossCount;
    case ResultRole::correct:
      return rt::Role::Correct;
    case ResultRole::scaled_loss_sum:
      return std::nullopt;
    }
    return std::nullopt;
  }

  void addPorts() {
    for (auto [number, type] : llvm::enumerate(program.getArgumentTypes())) {
      result.inputs.push_back(
          portOf(type, nameOr(program.getArgName(number), "input", number)));
      result.inputs.back().labels = labelsOf(number);
      result.inputs.back().indexed = findIndexedSize(program, number);
      result.inputs.back().isBatched = program.isBatched(number);
    }
    for (auto [number, type] : llvm::enumerate(program.getResultTypes())) {
      result.outputs.push_back(portOf(
          type, nameOr(program.getResultName(number), "output", number)));
      result.outputs.back().samples = program.getSampleDim(number);
      result.outputs.back().role = roleOf(number);
    }
    for (auto [number, port] : llvm::enumerate(result.outputs)) {
      std::optional<int64_t> dim = program.getCountedDim(number);
      std::string name = countName(port.name);
      auto count = llvm::find_if(result.outputs, [&](const rt::Port &other) {
        return other.name == name;
      });
      if (dim && count != result.outputs.end())
        port.count = {*dim,
                      static_cast<size_t>(count - result.outputs.begin())};
    }
  }

  void addStages() {
    Block &body = program.getBody().front();
    result.stages.resize(result.mesh.axisSize(meshAxis::pipe));
    lists.resize(result.stages.size());
    for (auto stage : body.getOps<StageOp>()) {
      stages.push_back(stage);
      lists[stage.getOn()].push_back(*actionOf(stage));
      rt::StageProgram &made = result.stages[stage.getOn()];
      if (made.name.empty())
        made.name = stage.getSymName().str();
    }
    sharding::SubAxes pipe;
    if (result.mesh.find(meshAxis::pipe))
      pipe.push_back(result.mesh.whole(meshAxis::pipe));
    for (int64_t rank = 0, e = result.mesh.numRanks(); rank < e; ++rank)
      result.stages[result.mesh.index(pipe, result.mesh.coordinates(rank))]
          .ranks.push_back(rank);
  }

  void addTransfers() {
    for (auto transfer : program.getBody().front().getOps<TransferOp>()) {
      rt::Transfer made;
      RankedTensorType type = tensorType(transfer.getResult());
      StringRef node = getNodeName(transfer);
      made.name = nameOr(node, "transfer", result.transfers.size());
      made.fromStage = transfer.getFrom();
      made.toStage = transfer.getTo();
      made.slots = transfer.getSlots();
      made.bytes = cost::localBytes(type, result.mesh);
      transfers[transfer] = result.transfers.size();
      result.transfers.push_back(std::move(made));
    }
  }

  int32_t stateOf(StringRef name) {
    auto [it, isNew] = tables.states.try_emplace(name, 0);
    if (!isNew)
      return it->second;
    auto op = symbols.lookup<StateOp>(name);
    rt::Port port = portOf(op.getTensorType(), name.str());
    rt::State state;
    state.name = port.name;
    state.dtype = port.dtype;
    state.shape = port.shape;
    state.layout = port.layout;
    state.file = op.getFile().str();
    state.offset = op.getOffset();
    if (std::optional<Type> narrow = op.getFileType())
      state.fileType = interpreter::toDType(*narrow);
    if (std::optional<DealtAttr> dealt = op.getDealt())
      state.dealt = dealt->getOrder();
    if (auto files = op->getParentOp()->getAttrOfType<DictionaryAttr>(kFiles))
      if (auto fingerprint = files.getAs<StringAttr>(op.getFile()))
        state.fingerprint = fingerprint.str();
    state.isZeroAtFirst = op.isZeroAtFirst();
    state.isWeight = !op.getFile().empty();
    // To all programs but the one that prepares it it is like a weight.
    state.isPrepared = op.getPrepared();
    state.isMutable =
        stored.contains(op.getSymNameAttr()) &&
        (!state.isPrepared || program.getSymName() == preparationProgram);
    it->second = result.states.size();
    result.states.push_back(std::move(state));
    return it->second;
  }

  void addUnusedWeights() {
    for (auto op :
         program->getParentOfType<PlanOp>().getBody().getOps<StateOp>())
      if (!op.getFile().empty() && !tables.states.contains(op.getSymName()))
        result.states[stateOf(op.getSymName())].isUnused = true;
  }

  /// Where lists find what another one of their ranks has made.
  int32_t keptOf(OpResult value) {
    if (OpResult sum = keptInPlaceOf(value, result.mesh))
      return keptOf(sum);
    auto [it, isNew] = keptValues.try_emplace(value, 0);
    if (!isNew)
      return it->second;
    auto stage = cast<StageOp>(value.getOwner());
    RankedTensorType type = tensorType(value);
    Operation *end = stage.getBody().front().getTerminator();
    Operation *maker = end->getOperand(value.getResultNumber()).getDefiningOp();
    std::vector<rt::Kept> &all = result.stages[stage.getOn()].kept;
    rt::Kept kept;
    kept.name =
        nameOr(maker ? getNodeName(maker) : StringRef(), "kept", all.size());
    kept.bytes = cost::localBytes(type, result.mesh);
    kept.slots = static_cast<int32_t>(keptSlots(value, result.mesh));
    it->second = all.size();
    all.push_back(std::move(kept));
    return it->second;
  }

  StageSource prepare(StageOp stage, LocalStageOp ops) {
    StageSource source;
    source.local = ops;
    source.number = static_cast<int64_t>(sources.size());
    ActionKind kind = *actionOf(stage);
    source.list.isOnceAStep = kind.isOnceAStep();
    if (!(kind == ActionKind()))
      source.list.name = stage.getSymName().str();
    for (size_t i = 0; i < ops.getStates().size(); ++i)
      stateOf(ops.getState(i));
    for (Value operand : stage.getOperands()) {
      if (auto argument = dyn_cast<BlockArgument>(operand)) {
        source.inputs.push_back(
            {rt::Space::Input, static_cast<int32_t>(argument.getArgNumber())});
        continue;
      }
      if (operand.getDefiningOp<StageOp>()) {
        source.inputs.push_back(
            {rt::Space::Kept, keptOf(cast<OpResult>(operand))});
        continue;
      }
      auto transfer = operand.getDefiningOp<TransferOp>();
      source.inputs.push_back(
          {rt::Space::Received, transfers.lookup(transfer)});
    }
    for (OpResult value : stage.getResults()) {
      StageOutput &output = source.outputs.emplace_back();
      for (OpOperand &use : value.getUses()) {
        if (isa<StageOp>(use.getOwner()))
          output.kept.assign({keptOf(value)});
        else if (isa<ReturnOp>(use.getOwner()))
          output.outputs.push_back(use.getOperandNumber());
        else
          output.transfers.push_back(
              transfers.lookup(cast<TransferOp>(use.getOwner())));
      }
    }
    for (size_t i = 0; i < ops.getStored().size(); ++i)
      source.outputs.emplace_back().states.push_back(
          stateOf(ops.getStoredState(i)));
    return source;
  }

  llvm::Error compileKernels() {
    if (options.withoutKernels) {
      for (StageSource &source : sources)
        for (auto fusion : source.local.getBlock().getOps<FusionOp>())
          source.kernels[fusion] = CompiledKernel();
      return llvm::Error::success();
    }
    KernelOptions kernelOptions;
    kernelOptions.target = options.target;
    kernelOptions.cacheDir = options.cacheDir;
    kernelOptions.numThreads = options.numThreads;
    kernelOptions.onMany = options.onMany;
    auto compiler = KernelCompiler::create(kernelOptions);
    if (!compiler)
      return compiler.takeError();
    SmallVector<FusionOp> fusions;
    for (StageSource &source : sources)
      llvm::append_range(fusions, source.local.getBlock().getOps<FusionOp>());
    auto compiled = (*compiler)->compileAll(fusions);
    if (!compiled)
      return compiled.takeError();
    size_t next = 0;
    for (StageSource &source : sources)
      for (auto fusion : source.local.getBlock().getOps<FusionOp>())
        source.kernels[fusion] = (*compiled)[next++];
    if (llvm::Error error = compileReductions(**compiler))
      return error;
    if (options.onKernels) {
      KernelCompiler::Statistics told = (*compiler)->getStatistics();
      options.onKernels(told.compiled, told.fromDisk);
    }
    return llvm::Error::success();
  }

  /// Of what members of a group reduce on devices, where there is code for it.
  llvm::Error compileReductions(KernelCompiler &compiler) {
    for (StageSource &source : sources)
      for (auto op :
           source.local.getBlock().getOps<LocalCollectiveOpInterface>()) {
        if (!op.getReduction())
          continue;
        Reduction reduction;
        reduction.kind = *op.getReduction();
        reduction.type = tensorType(op->getResult(0)).getElementType();
        reduction.sources = numParts(op.getMovedAxes().resolve(result.mesh));
        bool isScattered =
            op.getStepKind() == sharding::StepKind::ReduceScatter;
        reduction.destinations = isScattered ? 1 : reduction.sources;
        if (!compiler.canReduce(reduction))
          continue;
        auto kernel = compiler.compileReduction(reduction);
        if (!kernel)
          return kernel.takeError();
        source.reductions[op] = std::move(*kernel);
      }
    return llvm::Error::success();
  }

  void addSchedule() {
    auto schedule = *program.getBody().front().getOps<ScheduleOp>().begin();
    for (auto [stage, known, order] :
         llvm::zip_equal(result.stages, lists,
                         schedule.getOrders().getAsValueRange<StringAttr>())) {
      SmallVector<StringRef> actions;
      order.split(actions, ' ', -1, /*KeepEmpty=*/false);
      for (StringRef text : actions) {
        ScheduledAction action = *parseAction(text);
        stage.schedule.push_back(
            {static_cast<int32_t>(action.microBatch),
             static_cast<int32_t>(llvm::find(known, action.kind) -
                                  known.begin())});
      }
    }
  }

  ProgramOp program;
  SymbolTable symbols{program->getParentOfType<PlanOp>()};
  const Options &options;
  rt::Program result;
  ProgramTables tables;
  /// States that some program of the plan changes.
  llvm::DenseSet<StringAttr> stored;
  /// The stages in the program's order; and for each pipe coordinate the lists'
  /// kinds.
  std::vector<StageOp> stages;
  std::vector<SmallVector<ActionKind>> lists;
  OwningOpRef<PlanOp> local;
  std::vector<StageSource> sources;
  llvm::DenseMap<Value, int32_t> keptValues;
  llvm::DenseMap<Operation *, int32_t> transfers;
};

} // namespace

llvm::Expected<rt::Program> generate(ProgramOp program,
                                     const Options &options) {
  return ProgramBuilder(program, options).build();
}

} // namespace ax::codegen
