//===- StageBuilder.cpp - Commands of one stage ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "StageBuilder.h"

#include "CommandName.h"
#include "StageAttrs.h"
#include "StageBuffers.h"
#include "ax/Interpreter/Elements.h"
#include "ax/Local/Local.h"
#include "ax/Support/Error.h"

using namespace mlir;

namespace ax::codegen {

namespace {

class StageBuilder {
public:
  StageBuilder(const StageSource &source, ProgramTables &tables,
               rt::StageProgram &stage)
      : source(source), tables(tables), stage(stage),
        commands(stage.lists.emplace_back(source.list).commands),
        buffers(tables, stage), local(source.local), block(local.getBlock()) {}

  llvm::Error build() {
    bindArguments();
    bindResults();
    for (Operation &op : block) {
      size_t first = commands.size();
      if (llvm::Error error = emit(&op))
        return error;
      if (op.hasAttr(kOnce))
        for (size_t i = first; i < commands.size(); ++i)
          commands[i].microBatches = rt::MicroBatches::Once;
    }
    stage.arenaBytes =
        std::max(stage.arenaBytes, local.getArenaBytesAttr().getInt());
    return llvm::Error::success();
  }

private:
  //===--- Arguments and results ------------------------------------------===//

  StringRef inputName(const StageInput &input) const {
    if (input.space == rt::Space::Kept)
      return stage.kept[input.index].name;
    return input.space == rt::Space::Input
               ? tables.program.inputs[input.index].name
               : tables.program.transfers[input.index].name;
  }

  void bindArguments() {
    for (BlockArgument argument : block.getArguments()) {
      unsigned number = argument.getArgNumber();
      int64_t bytes = byteSizeOf(argument);
      if (number < local.getNumInputs()) {
        StageInput input = source.inputs[number];
        buffers.place(argument, buffers.add(input.space, input.index, bytes,
                                            inputName(input)));
        continue;
      }
      if (number >= local.getFirstSum()) {
        int64_t result = local.getAccumulated()[number - local.getFirstSum()];
        int32_t kept = source.outputs[result].kept.front();
        buffers.place(argument, sumBuffers[kept] =
                                    buffers.add(rt::Space::Kept, kept, bytes,
                                                stage.kept[kept].name));
        continue;
      }
      StringRef name = local.getState(number - local.getNumInputs());
      int32_t state = tables.states.lookup(name);
      buffers.place(argument, stateBuffers[state] = buffers.add(
                                  rt::Space::State, state, bytes, name));
    }
    llvm::SmallDenseSet<int32_t> received;
    for (const StageInput &input : source.inputs)
      if (input.space == rt::Space::Received &&
          received.insert(input.index).second)
        add(rt::RecvCommand{input.index},
            tables.program.transfers[input.index].name, 0);
  }

  /// Where a result goes in the end.
  int32_t bufferOf(const StageOutput &sinks, int64_t bytes) {
    if (!sinks.kept.empty()) {
      int32_t kept = sinks.kept.front();
      return buffers.add(rt::Space::Kept, kept, bytes, stage.kept[kept].name);
    }
    if (!sinks.outputs.empty()) {
      int32_t output = sinks.outputs.front();
      return buffers.add(rt::Space::Output, output, bytes,
                         tables.program.outputs[output].name);
    }
    int32_t state = sinks.states.front();
    auto [it, isNew] = stateBuffers.try_emplace(state, 0);
    if (isNew)
      it->second = buffers.add(rt::Space::State, state, bytes,
                               tables.program.states[state].name);
    return it->second;
  }

  /// Values that are made right where they go in the end.
  void bindResults() {
    for (auto [number, value] :
         llvm::enumerate(local.getYield()->getOperands())) {
      Value base = viewOf(value).base;
      Operation *maker = base.getDefiningOp();
      PlaceAttr wanted =
          PlaceAttr::get(local.getContext(), PlaceKind::Result, number);
      if (maker && maker->hasAttr(kPlaces) &&
          getPlace(cast<OpResult>(base)) == wanted)
        buffers.place(base, bufferOf(source.outputs[number], byteSizeOf(base)));
    }
  }

  //===--- Commands -------------------------------------------------------===//

  template <typename Body>
  void add(Body body, StringRef name, int64_t bytes,
           std::vector<std::string> nodes = {}) {
    rt::Command command;
    command.body = std::move(body);
    command.name = name.str();
    command.bytes = bytes;
    command.nodes = std::move(nodes);
    commands.push_back(std::move(command));
  }

  llvm::Error emit(Operation *op) {
    if (isViewOp(op) || isa<ConstantOp>(op))
      return llvm::Error::success();
    if (auto fusion = dyn_cast<FusionOp>(op))
      return emitKernel(fusion);
    if (isLibraryOp(op))
      return emitLibrary(op);
    if (auto collective = dyn_cast<LocalCollectiveOpInterface>(op))
      return emitCollective(collective);
    if (auto await = dyn_cast<AwaitOp>(op))
      return emitWait(await);
    if (auto report = dyn_cast<ReportFaultOp>(op))
      return emitReport(report);
    if (auto terminator = dyn_cast<LocalYieldOp>(op))
      return emitReturn(terminator);
    return makeError(ExitCode::Unsupported, op->getName().getStringRef() +
                                                " of node '" + nameOf(op) +
                                                "' has no kernel");
  }

  /// Its number in the program, which has each once.
  int32_t kernelOf(StringRef key, const rt::Kernel *image,
                   llvm::function_ref<std::string()> name) {
    std::vector<rt::Kernel> &kernels = tables.program.kernels;
    auto [it, isNew] = tables.kernels.try_emplace(key, kernels.size());
    if (isNew) {
      kernels.push_back(image ? *image : rt::Kernel());
      kernels.back().name = name();
    }
    return it->second;
  }

  llvm::Error emitKernel(FusionOp fusion) {
    const CompiledKernel &compiled = source.kernels.at(fusion);
    rt::KernelCommand command;
    command.kernel = kernelOf(compiled.signature.key, compiled.image.get(),
                              [&] { return kindsOf(fusion); });
    std::vector<int64_t> &bounds =
        tables.program.kernels[command.kernel].scalarBounds;
    bounds.resize(compiled.signature.scalars.size());
    for (ValueRange values :
         {ValueRange(fusion.getOperands()), ValueRange(fusion.getResults())})
      for (Value value : values) {
        auto ref = buffers.denseRef(value);
        if (!ref)
          return ref.takeError();
        command.buffers.push_back(*ref);
      }
    for (auto [axes, bound] :
         llvm::zip_equal(compiled.signature.scalars, bounds)) {
      command.scalars.push_back({0, 1, axes.resolve(tables.program.mesh)});
      bound = std::max(bound, numParts(command.scalars.back().axes));
    }
    add(std::move(command), nameOf(fusion), bytesMoved(fusion),
        nodesOf(fusion));
    return llvm::Error::success();
  }

  bool isConstant(Value value) const {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument)
      return static_cast<bool>(value.getDefiningOp<ConstantOp>());
    const rt::Buffer &buffer = stage.buffers[buffers.lookup(argument)];
    return buffer.space == rt::Space::State &&
           !tables.program.states[buffer.index].isMutable;
  }

  llvm::Error emitLibrary(Operation *op) {
    LibraryCall call = makeLibraryCall(
        op, [&](Value value) { return isConstant(value); }, {}, tables.gpu);
    assert(call.wantsDense.empty() && "fusion makes operands dense");
    rt::LibraryCommand command;
    command.desc = call.desc;
    if (auto *check = std::get_if<rt::IndexCheckDesc>(&command.desc))
      describeCheck(cast<CheckIndicesOp>(op), *check);
    for (const LibraryCall::Argument &argument : call.arguments) {
      auto ref = buffers.ref(argument.base, argument.byteOffset);
      if (!ref)
        return ref.takeError();
      command.arguments.push_back(*ref);
    }
    auto library = dyn_cast<LibraryOp>(op);
    if (!library || !library.getAccumulation()) {
      add(std::move(command), nameOf(op), bytesMoved(op), nodesOf(op));
      return llvm::Error::success();
    }
    assert(numParts(library.getAccumulation().getAxes().resolve(
               tables.program.mesh)) == tables.program.mesh.numTimeSlices() &&
           "localisation takes all axes in time");
    add(withoutResidual(command), nameOf(op),
        bytesMoved(op) - byteSizeOf(op->getResult(0)), nodesOf(op));
    commands.back().microBatches = rt::MicroBatches::First;
    add(std::move(command), nameOf(op), bytesMoved(op), nodesOf(op));
    commands.back().microBatches = rt::MicroBatches::AllButFirst;
    return llvm::Error::success();
  }

  /// A product that starts the sum to which `command` adds.
  static rt::LibraryCommand withoutResidual(rt::LibraryCommand command) {
    auto &matmul = std::get<rt::MatmulDesc>(command.desc);
    assert(matmul.hasResidual && !matmul.hasBias && "what adds to a sum");
    matmul.hasResidual = false;
    matmul.residual = {};
    // Behind the factors.
    command.arguments.erase(command.arguments.begin() + 2);
    return command;
  }

  llvm::Error emitReport(ReportFaultOp op) {
    auto word = buffers.denseRef(op.getWord());
    if (!word)
      return word.takeError();
    rt::FaultCommand command;
    command.word = *word;
    auto indices = cast<RankedTensorType>(op.getIndices());
    command.check.indices = rt::TensorDesc::dense(
        *interpreter::toDType(indices.getElementType()),
        {indices.getShape().begin(), indices.getShape().end()});
    describeCheck(op, command.check);
    add(std::move(command), nameOf(op), bytesMoved(op), nodesOf(op));
    return llvm::Error::success();
  }

  /// What is checked, and which of several ranks' faults is the first.
  template <typename Op>
  void describeCheck(Op op, rt::IndexCheckDesc &check) {
    check.sizes.assign(op.getSizes().begin(), op.getSizes().end());
    check.isCount = op.getIsCount();
    check.layout =
        getLayout(cast<RankedTensorType>(op.getWhole()), tables.program.mesh);
    check.order = source.number << 32 | static_cast<int64_t>(op.getOrder());
  }

  int32_t groupSetOf(const sharding::SubAxes &axes) {
    for (const auto &[known, number] : groupSets)
      if (known == axes)
        return number;
    auto made = rt::makeGroupSet(tables.program.mesh, axes, stage.ranks);
    // Lists share them.
    auto known = llvm::find_if(stage.groups, [&](const rt::GroupSet &set) {
      return set.groups == made.groups;
    });
    int32_t number = known - stage.groups.begin();
    if (known == stage.groups.end())
      stage.groups.push_back(std::move(made));
    groupSets.push_back({axes, number});
    return number;
  }

  static rt::CollectiveKind kindOf(sharding::StepKind kind) {
    switch (kind) {
    case sharding::StepKind::AllReduce:
      return rt::CollectiveKind::AllReduce;
    case sharding::StepKind::ReduceScatter:
      return rt::CollectiveKind::ReduceScatter;
    case sharding::StepKind::AllGather:
      return rt::CollectiveKind::AllGather;
    case sharding::StepKind::AllToAll:
      return rt::CollectiveKind::AllToAll;
    case sharding::StepKind::CollectivePermute:
      return rt::CollectiveKind::Permute;
    case sharding::StepKind::AllSlice:
    case sharding::StepKind::ToPartial:
      break;
    }
    llvm_unreachable("nothing is exchanged");
  }

  /// One tensor of a collective.
  llvm::Expected<rt::CollectivePart>
  collectivePart(LocalCollectiveOpInterface op, OpResult result,
                 int32_t groupSet) {
    unsigned number = result.getResultNumber();
    Value operand = op->getOperand(number);
    RankedTensorType from = tensorType(operand), to = tensorType(result);
    rt::CollectivePart part;
    part.dtype = *interpreter::toDType(from.getElementType());
    part.shape.assign(from.getShape().begin(), from.getShape().end());
    if (std::optional<ReduceOpKind> kind = op.getReduction())
      part.reduce = *kind == ReduceOpKind::max   ? sharding::ReduceKind::Max
                    : *kind == ReduceOpKind::min ? sharding::ReduceKind::Min
                                                 : sharding::ReduceKind::Sum;
    if (int64_t dim = op.getGatherDimOf(number); dim >= 0) {
      part.gatherDim = dim;
      part.gatherSize = to.getDimSize(dim);
    }
    if (int64_t dim = op.getScatterDimOf(number); dim >= 0) {
      part.scatterDim = dim;
      part.scatterPart = to.getDimSize(dim);
    }
    part.kind = kindOf(op.getStepKind());
    if (auto permute = dyn_cast<LocalPermuteOp>(op.getOperation()))
      if (llvm::Error error = permutationOf(permute, groupSet, part))
        return error;

    auto source = buffers.denseRef(operand);
    if (!source)
      return source.takeError();
    part.source = *source;
    auto destination = buffers.ref(result);
    if (!destination)
      return destination.takeError();
    part.destination = *destination;
    return part;
  }

  llvm::Error emitCollective(LocalCollectiveOpInterface op) {
    rt::CollectiveCommand command;
    command.groupSet =
        groupSetOf(op.getMovedAxes().resolve(tables.program.mesh));
    for (OpResult result : op->getResults()) {
      auto part = collectivePart(op, result, command.groupSet);
      if (!part)
        return part.takeError();
      command.parts.push_back(std::move(*part));
    }
    std::string name = nameOf(op);
    if (StringAttr cause = op.getCause())
      name += " (" + cause.str() + ")";
    if (const auto &kernel = source.reductions.lookup(op))
      command.reduction = kernelOf(kernel->key, kernel.get(), [&] {
        return "reduce_" + stringifyReduceOpKind(*op.getReduction()).str();
      });
    if (op.isStarted())
      command.request = requests[op->getResult(0)] = numRequests++;
    add(std::move(command), name, bytesMoved(op), nodesOf(op));
    return llvm::Error::success();
  }

  llvm::Error emitWait(AwaitOp op) {
    Operation *started = op.getStarted().getDefiningOp();
    buffers.place(op.getResult(), buffers.lookup(op.getStarted()));
    add(rt::WaitCommand{requests.lookup(op.getStarted())}, nameOf(started), 0);
    return llvm::Error::success();
  }

  /// The same for every group, as members.
  llvm::Error permutationOf(LocalPermuteOp op, int32_t groupSet,
                            rt::CollectivePart &part) {
    bool isFirst = true;
    for (const std::vector<int32_t> &group : stage.groups[groupSet].groups) {
      std::vector<int32_t> members;
      for (int32_t rank : group)
        members.push_back(llvm::find(group, op.getSources()[rank]) -
                          group.begin());
      if (!isFirst && members != part.permutation)
        return makeError(ExitCode::BadPlan, "collective_permute of node '" +
                                                nameOf(op) +
                                                "' differs between its groups");
      part.permutation = members;
      isFirst = false;
    }
    return llvm::Error::success();
  }

  void emitCopy(Value value, rt::BufferRef from, int32_t to, StringRef name) {
    rt::CopyCommand copy;
    copy.source = from;
    copy.destination = {to, 0};
    copy.elementBytes =
        byteSize(*interpreter::toDType(tensorType(value).getElementType()));
    copy.sizes = {tensorType(value).getNumElements()};
    copy.sourceStrides = copy.destinationStrides = {1};
    add(std::move(copy), name, 2 * byteSizeOf(value));
  }

  llvm::Error emitReturn(LocalYieldOp terminator) {
    std::vector<StateCopy> copies;
    for (auto [number, sinks] : llvm::enumerate(source.outputs)) {
      Value value = terminator->getOperand(number);
      auto ref = buffers.denseRef(value);
      if (!ref)
        return ref.takeError();
      int64_t bytes = byteSizeOf(value);
      for (int32_t output : sinks.outputs) {
        const rt::Buffer &from = stage.buffers[ref->buffer];
        if (from.space == rt::Space::Output && from.index == output)
          continue;
        StringRef name = tables.program.outputs[output].name;
        emitCopy(value, *ref,
                 buffers.add(rt::Space::Output, output, bytes, name), name);
      }
      for (int32_t state : sinks.states) {
        StringRef name = tables.program.states[state].name;
        const rt::Buffer &from = stage.buffers[ref->buffer];
        if (from.space == rt::Space::State && from.index == state)
          continue;
        bool isOther = from.space == rt::Space::State &&
                       isa<BlockArgument>(viewOf(value).base);
        auto [it, isNew] = stateBuffers.try_emplace(state, 0);
        if (isNew)
          it->second = buffers.add(rt::Space::State, state, bytes, name);
        copies.push_back(
            {value, *ref, it->second, state, isOther ? from.index : -1});
      }
      for (int32_t kept : sinks.kept) {
        const rt::Buffer &from = stage.buffers[ref->buffer];
        if (from.space == rt::Space::Kept && from.index == kept)
          continue;
        StringRef name = stage.kept[kept].name;
        auto [it, isNew] = sumBuffers.try_emplace(kept, 0);
        if (isNew)
          it->second = buffers.add(rt::Space::Kept, kept, bytes, name);
        emitCopy(value, *ref, it->second, name);
      }
      for (int32_t transfer : sinks.transfers)
        add(rt::SendCommand{transfer, *ref},
            tables.program.transfers[transfer].name, bytes);
    }
    return emitStateCopies(std::move(copies));
  }

  struct StateCopy {
    Value value;
    rt::BufferRef from;
    int32_t buffer, state, other;
  };

  /// A state that becomes what another one was does so before that one changes.
  llvm::Error emitStateCopies(std::vector<StateCopy> copies) {
    while (!copies.empty()) {
      auto next = llvm::find_if(copies, [&](const StateCopy &copy) {
        return llvm::none_of(copies, [&](const StateCopy &reading) {
          return reading.other == copy.state;
        });
      });
      auto nameOf = [&](int32_t state) -> StringRef {
        return tables.program.states[state].name;
      };
      if (next == copies.end())
        return makeError(ExitCode::Unsupported,
                         "states are to change places: '" +
                             nameOf(copies[0].state) + "' and '" +
                             nameOf(copies[0].other) + "'");
      emitCopy(next->value, next->from, next->buffer, nameOf(next->state));
      copies.erase(next);
    }
    return llvm::Error::success();
  }

  const StageSource &source;
  ProgramTables &tables;
  rt::StageProgram &stage;
  std::vector<rt::Command> &commands;
  StageBuffers buffers;
  LocalStageOp local;
  Block &block;
  /// The buffer of each state, and of the sum of each kept value.
  llvm::DenseMap<int32_t, int32_t> stateBuffers, sumBuffers;
  /// The request number of each collective that is started and not yet waited
  /// for.
  llvm::DenseMap<Value, int32_t> requests;
  int32_t numRequests = 0;
  std::vector<std::pair<sharding::SubAxes, int32_t>> groupSets;
};

} // namespace

llvm::Error buildStage(const StageSource &source, ProgramTables &tables,
                       rt::StageProgram &stage) {
  return StageBuilder(source, tables, stage).build();
}

} // namespace ax::codegen
