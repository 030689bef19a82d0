//===- PrepareRank.cpp - Before a rank's first request --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RankExecutor.h"

#include "ax/Runtime/RankOperation.h"
#include "ax/Support/Error.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <numeric>

namespace ax::rt {

RankExecutor::RankExecutor(const RankContext &context, RankPorts &ports,
                           StateStore &states, const RankExecutor *owner,
                           const RankOptions &options)
    : context(context), program(context.program), stage(context.stage),
      ports(ports), states(states), owner(owner),
      isBlocking(options.isBlocking), isCaptured(options.isCaptured),
      warn(options.warn), faults(this->context) {
  for (const CommandList &list : stage->lists) {
    firstStep.push_back(steps.size());
    isSending.push_back(false);
    for (const Command &command : list.commands) {
      Step &step = steps.emplace_back();
      step.command = &command;
      step.list = static_cast<int32_t>(firstStep.size()) - 1;
      step.references = buffersOf(command);
      step.addresses.resize(step.references.size());
      // A send has no destination.
      if (std::holds_alternative<SendCommand>(command.body)) {
        step.addresses.emplace_back();
        isSending.back() = true;
      }
    }
  }
  firstStep.push_back(steps.size());
  std::vector<int32_t> numTurns(stage->lists.size(), 0);
  for (const Action &action : stage->schedule) {
    int32_t place = numTurns[static_cast<size_t>(action.list)]++;
    if (place == 0)
      firstAction[action.list] = turns.size();
    turns.push_back({0, 0, place});
  }
  for (size_t i = 0; i < turns.size(); ++i)
    turns[i].perStep = numTurns[static_cast<size_t>(stage->schedule[i].list)];
  if (options.order)
    orderMessages(*options.order);
  if (options.isTraced)
    recorder.emplace(context.device);
  trace.rank = context.rank;
  trace.stage = context.stageIndex;
  if (options.log)
    flight.emplace(
        *options.log, context,
        FlightSource{[this] { return FlightPlace{getNumBegun(), isIdle()}; },
                     [this] { return describe(); }});
}

bool RankExecutor::isWaiting() const {
  int32_t command = progress.getCommand();
  if (command < 0)
    return command == RankProgress::handingOver;
  const auto &body = steps[static_cast<size_t>(command)].command->body;
  return !std::holds_alternative<KernelCommand>(body) &&
         !std::holds_alternative<LibraryCommand>(body) &&
         !std::holds_alternative<CopyCommand>(body) &&
         !std::holds_alternative<FaultCommand>(body);
}

llvm::Error RankExecutor::prepare() {
  progress.setOnHost(RankProgress::preparing);
  if (llvm::Error error = prepareAll())
    return addContext(std::move(error), describe());
  progress.setOnHost(RankProgress::idle);
  return llvm::Error::success();
}

llvm::Error RankExecutor::prepareAll() {
  context.device.attachThread();
  if (context.host)
    context.host->attachThread();
  if (llvm::Error error = progress.create(context.device))
    return error;
  llvm::Expected<RankStreams> created = RankStreams::create(context.device);
  if (!created)
    return created.takeError();
  streams = std::move(*created);
  transfer.emplace(context.device, *streams.upload);
  llvm::Expected<std::unique_ptr<DeviceMemory>> newArena =
      context.allocate(stage->arenaBytes);
  if (!newArena)
    return newArena.takeError();
  arena = std::move(*newArena);
  memory.arenaBytes = stage->arenaBytes;
  bases.assign(stage->buffers.size(), {});
  needsState.assign(stage->buffers.size(), false);
  numReads.assign(program.states.size(), 0);
  for (const Step &step : steps)
    for (const BufferRef &ref : step.references)
      if (const Buffer &buffer =
              stage->buffers[static_cast<size_t>(ref.buffer)];
          buffer.space == Space::State)
        ++numReads[static_cast<size_t>(buffer.index)];
  for (size_t b = 0; b < stage->buffers.size(); ++b)
    if (stage->buffers[b].space == Space::Arena)
      bases[b] = arena->getAddress() + stage->buffers[b].offset;
  for (auto part : {&RankExecutor::preparePorts, &RankExecutor::prepareGroups,
                    &RankExecutor::prepareTransfers, &RankExecutor::prepareKept,
                    &RankExecutor::prepareSteps, &RankExecutor::prepareState,
                    &RankExecutor::prepareGraphs})
    if (llvm::Error error = (this->*part)())
      return error;
  return llvm::Error::success();
}

llvm::Error RankExecutor::preparePorts() {
  for (size_t l = 0; l < stage->lists.size(); ++l) {
    auto first = firstAction.find(static_cast<int32_t>(l));
    listPorts.emplace_back(
        context, streams,
        first == firstAction.end() ? 0 : turns[first->second].perStep,
        recorder ? &*recorder : nullptr);
  }
  for (size_t b = 0; b < stage->buffers.size(); ++b) {
    const Buffer &buffer = stage->buffers[b];
    bool isInput = buffer.space == Space::Input;
    if (!isInput && buffer.space != Space::Output)
      continue;
    auto number = static_cast<int32_t>(b);
    int32_t list = 0;
    for (const Step &step : steps)
      for (const BufferRef &ref : step.references)
        if (ref.buffer == number)
          list = step.list;
    ListPorts &made = listPorts[static_cast<size_t>(list)];
    if (llvm::Error error =
            isInput ? made.addInput(number, ports.bindInput(buffer.index))
                    : made.addOutput(number, ports.bindOutput(buffer.index)))
      return error;
  }
  for (const ListPorts &made : listPorts)
    memory.bufferBytes += made.getBytes();
  return llvm::Error::success();
}

llvm::Error RankExecutor::prepareGroups() {
  std::vector<std::vector<int32_t>> all;
  for (const StageProgram &each : program.stages)
    for (const GroupSet &set : each.groups)
      all.insert(all.end(), set.groups.begin(), set.groups.end());
  if (llvm::Error error = context.communicator.announceGroups(all))
    return error;
  for (const GroupSet &set : stage->groups)
    for (const std::vector<int32_t> &ranks : set.groups)
      if (std::find(ranks.begin(), ranks.end(), context.rank) != ranks.end()) {
        llvm::Expected<std::shared_ptr<Group>> group =
            context.communicator.createGroup(ranks);
        if (!group)
          return group.takeError();
        groups.push_back(std::move(*group));
      }
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<StreamOperation>>
RankExecutor::prepareCollective(const CollectiveCommand &command,
                                const std::string &name) const {
  std::vector<RankOperation::Sizes> sizes;
  for (const CollectivePart &part : command.parts)
    sizes.push_back({sourceBytes(part), destinationBytes(part)});
  CollectiveSpecs specs(command.parts.begin(), command.parts.end());
  const auto &group = groups[static_cast<size_t>(command.groupSet)];
  const Kernel *reduction =
      command.reduction >= 0
          ? &program.kernels[static_cast<size_t>(command.reduction)]
          : nullptr;
  return RankOperation::inPlaceOf(
      context.communicator.prepareOnStream(specs, group, name, reduction),
      [&] { return context.communicator.prepare(specs, group, name); },
      context.device, sizes);
}

llvm::Expected<std::unique_ptr<StreamOperation>>
RankExecutor::prepareMessage(size_t number, bool isSend) const {
  const Transfer &transfer = program.transfers[number];
  int32_t stage = isSend ? transfer.toStage : transfer.fromStage;
  int32_t peer =
      program.stages[static_cast<size_t>(stage)].ranks[context.position];
  auto tag = static_cast<int64_t>(number);
  Communicator &comm = context.communicator;
  if (isSend)
    return RankOperation::inPlaceOf(
        comm.prepareSendOnStream(peer, tag, transfer.bytes, transfer.name),
        [&] {
          return comm.prepareSend(peer, tag, transfer.bytes, transfer.name);
        },
        context.device, {{transfer.bytes, 0}});
  return RankOperation::inPlaceOf(
      comm.prepareReceiveOnStream(peer, tag, transfer.bytes, transfer.name),
      [&] {
        return comm.prepareReceive(peer, tag, transfer.bytes, transfer.name);
      },
      context.device, {{0, transfer.bytes}});
}

llvm::Error RankExecutor::prepareTransfers() {
  for (size_t t = 0; t < program.transfers.size(); ++t) {
    const Transfer &transfer = program.transfers[t];
    if (transfer.toStage != context.stageIndex)
      continue;
    Incoming in;
    in.transfer = static_cast<int32_t>(t);
    for (const Step &step : steps)
      if (const auto *recv = std::get_if<RecvCommand>(&step.command->body))
        if (recv->transfer == in.transfer)
          in.list = step.list;
    for (int32_t slot = 0; slot < transfer.slots; ++slot) {
      llvm::Expected<std::unique_ptr<DeviceMemory>> allocated =
          context.allocate(transfer.bytes);
      if (!allocated)
        return allocated.takeError();
      memory.bufferBytes += transfer.bytes;
      auto receive = prepareMessage(t, /*isSend=*/false);
      if (!receive)
        return receive.takeError();
      if (!isOrdered())
        if (llvm::Error error = (*receive)->start(
                streams.receive.get(),
                {DeviceAddress(), (*allocated)->getAddress()}))
          return error;
      in.slots.push_back(std::move(*allocated));
      in.receives.push_back(std::move(*receive));
    }
    for (size_t b = 0; b < stage->buffers.size(); ++b)
      if (stage->buffers[b].space == Space::Received &&
          stage->buffers[b].index == in.transfer)
        in.buffers.push_back(static_cast<int32_t>(b));
    incoming.push_back(std::move(in));
  }
  return llvm::Error::success();
}

llvm::Error RankExecutor::prepareKept() {
  for (const Kept &value : stage->kept) {
    int64_t stride =
        (value.bytes + bufferAlignment - 1) / bufferAlignment * bufferAlignment;
    llvm::Expected<std::unique_ptr<DeviceMemory>> allocated =
        context.allocate(stride * value.slots);
    if (!allocated)
      return allocated.takeError();
    if (llvm::Error error = streams.compute->clear((*allocated)->getAddress(),
                                                   (*allocated)->getSize()))
      return error;
    memory.bufferBytes += (*allocated)->getSize();
    kept.push_back(std::move(*allocated));
  }
  for (size_t b = 0; b < stage->buffers.size(); ++b)
    if (stage->buffers[b].space == Space::Kept)
      keptBuffers.push_back({static_cast<int32_t>(b), stage->buffers[b].index});
  return llvm::Error::success();
}

void RankExecutor::observe(Step &step, size_t index,
                           StreamOperation &operation) {
  if (!recorder || !recorder->hasStreams())
    return;
  const auto &body = step.command->body;
  StreamKind kind = std::holds_alternative<SendCommand>(body) ? StreamKind::Send
                    : std::holds_alternative<RecvCommand>(body)
                        ? StreamKind::Receive
                        : StreamKind::Exchange;
  auto made = std::make_unique<OperationRecorder>(*recorder, kind,
                                                  static_cast<int32_t>(index));
  // Those of one step are alike, and each has its turn.
  StreamObserver &observer = step.recorder ? *step.recorder : *made;
  if (operation.setObserver(observer) && !step.recorder)
    step.recorder = std::move(made);
}

/// Bytes of the operand that a library operation packs.
static int64_t packedBytes(const Command &command) {
  const auto *library = std::get_if<LibraryCommand>(&command.body);
  int packed = library ? packedArgument(library->desc) : -1;
  return packed >= 0 ? argumentDesc(library->desc, packed).spanBytes() : 0;
}

llvm::Error RankExecutor::prepareSteps() {
  std::vector<size_t> order(steps.size());
  std::iota(order.begin(), order.end(), 0);
  // While a weight is packed it is in memory twice: the largest comes first,
  // when little else is there. All others stay in order.
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return packedBytes(*steps[a].command) > packedBytes(*steps[b].command);
  });
  std::vector<const Kernel *> kernels;
  for (const Step &step : steps)
    if (const auto *body = std::get_if<KernelCommand>(&step.command->body))
      kernels.push_back(&program.kernels[static_cast<size_t>(body->kernel)]);
  llvm::sort(kernels);
  kernels.erase(llvm::unique(kernels), kernels.end());
  std::shared_ptr<const void> ahead = context.device.loadAhead(kernels);
  int64_t workspaceBytes = 0;
  for (size_t i : order) {
    progress.setOnHost(static_cast<int32_t>(i));
    if (llvm::Error error = prepareStep(steps[i], i))
      return error;
    if (steps[i].op)
      workspaceBytes =
          std::max(workspaceBytes, steps[i].op->getWorkspaceBytes());
    if (steps[i].kernel)
      workspaceBytes =
          std::max(workspaceBytes, steps[i].kernel->getWorkspaceBytes());
  }
  progress.setOnHost(RankProgress::preparing);
  llvm::Expected<std::unique_ptr<DeviceMemory>> allocated =
      context.device.allocate(workspaceBytes);
  if (!allocated)
    return allocated.takeError();
  workspace = std::move(*allocated);
  memory.bufferBytes += workspaceBytes;
  for (size_t i = 0; i < steps.size(); ++i)
    if (std::holds_alternative<FaultCommand>(steps[i].command->body)) {
      steps[i].target = faultSteps.size();
      faultSteps.push_back(i);
    }
  return faults.create(faultSteps.size());
}

llvm::Error RankExecutor::prepareStep(Step &step, size_t index) {
  const auto &body = step.command->body;
  if (const auto *library = std::get_if<LibraryCommand>(&body))
    return prepareLibrary(step, *library);
  for (const BufferRef &ref : step.references)
    needsState[static_cast<size_t>(ref.buffer)] = true;
  if (const auto *kernel = std::get_if<KernelCommand>(&body)) {
    llvm::Expected<std::unique_ptr<DeviceKernel>> loaded =
        context.device.loadKernel(
            program.kernels[static_cast<size_t>(kernel->kernel)]);
    if (!loaded)
      return loaded.takeError();
    step.kernel = std::move(*loaded);
    for (int64_t m = 0; m < program.mesh.numTimeSlices(); ++m)
      for (const Scalar &scalar : kernel->scalars)
        step.scalars.push_back(
            scalar.constant +
            scalar.scale *
                program.mesh.index(
                    scalar.axes, context.coordinates(static_cast<int32_t>(m))));
  } else if (const auto *collective = std::get_if<CollectiveCommand>(&body)) {
    auto operation = prepareCollective(*collective, step.command->name);
    if (!operation)
      return operation.takeError();
    step.operation = std::move(*operation);
    observe(step, index, *step.operation);
  } else if (const auto *wait = std::get_if<WaitCommand>(&body)) {
    for (size_t i = firstStep[static_cast<size_t>(step.list)]; i < index; ++i)
      if (const auto *started =
              std::get_if<CollectiveCommand>(&steps[i].command->body))
        if (started->request == wait->request)
          step.target = i;
  } else if (const auto *send = std::get_if<SendCommand>(&body)) {
    auto operation =
        prepareMessage(static_cast<size_t>(send->transfer), /*isSend=*/true);
    if (!operation)
      return operation.takeError();
    step.operation = std::move(*operation);
    observe(step, index, *step.operation);
  } else if (const auto *recv = std::get_if<RecvCommand>(&body)) {
    while (incoming[step.target].transfer != recv->transfer)
      ++step.target;
    for (const auto &receive : incoming[step.target].receives)
      observe(step, index, *receive);
  }
  return llvm::Error::success();
}

llvm::Error RankExecutor::prepareLibrary(Step &step,
                                         const LibraryCommand &command) {
  int packed = packedArgument(command.desc);
  for (size_t i = 0; i < step.references.size(); ++i)
    if (static_cast<int>(i) != packed)
      needsState[static_cast<size_t>(step.references[i].buffer)] = true;
  ConstantOperand constant;
  std::shared_ptr<const StatePart> part;
  if (packed >= 0) {
    const BufferRef &ref = step.references[static_cast<size_t>(packed)];
    const Buffer &buffer = stage->buffers[static_cast<size_t>(ref.buffer)];
    const State &state = program.states[static_cast<size_t>(buffer.index)];
    if (!state.isMutable) {
      llvm::Expected<std::shared_ptr<const StatePart>> loaded =
          states.get(buffer.index, context, *transfer, byteSize(state.dtype));
      if (!loaded)
        return loaded.takeError();
      part = *loaded;
      constant = {part->getAddress() + ref.byteOffset, part->getIdentity(),
                  ref.byteOffset};
    }
  }
  if (llvm::Error error = prepareOp(step, command.desc, constant))
    return error;
  if (packed < 0)
    return llvm::Error::success();
  int32_t buffer = step.references[static_cast<size_t>(packed)].buffer;
  int32_t number = stage->buffers[static_cast<size_t>(buffer)].index;
  if (step.op ? step.op->readsConstant() : step.hostOp->readsConstant()) {
    needsState[static_cast<size_t>(buffer)] = true;
  } else if (--numReads[static_cast<size_t>(number)] == 0) {
    part.reset();
    if (program.states[static_cast<size_t>(number)].isPrepared)
      states.release(number, context);
  }
  return llvm::Error::success();
}

llvm::Error RankExecutor::prepareOp(Step &step, const LibraryDesc &desc,
                                    const ConstantOperand &constant) {
  llvm::Expected<std::unique_ptr<LibraryOp>> op =
      context.device.prepare(desc, constant);
  if (op) {
    step.op = std::move(*op);
    return llvm::Error::success();
  }
  ErrorDescription why = describeError(op.takeError());
  if (why.code != ExitCode::Unsupported || !context.host)
    return makeError(why.code, why.message);
  llvm::Expected<std::unique_ptr<HostOp>> hostOp = HostOp::create(
      desc, constant, context.device, *streams.compute, *context.host);
  if (!hostOp)
    return hostOp.takeError();
  step.hostOp = std::move(*hostOp);
  hostOps.try_emplace(llvm::StringRef(toString(desc)).split(' ').first.str(),
                      std::move(why.message));
  return llvm::Error::success();
}

llvm::Expected<std::shared_ptr<DeviceMemory>>
RankExecutor::makeOwnState(int32_t number) {
  if (!owner) {
    llvm::Expected<std::unique_ptr<DeviceMemory>> copied =
        states.copy(number, context, *transfer);
    if (!copied)
      return copied.takeError();
    memory.stateBytes += (*copied)->getSize();
    return std::move(*copied);
  }
  const std::string &name = program.states[static_cast<size_t>(number)].name;
  if (std::shared_ptr<DeviceMemory> shared = owner->shareOwnState(name))
    return shared;
  return makeErrorf(ExitCode::BadPlan,
                    "program '{0}' uses state '{1}' on rank {2}, where program "
                    "'{3}' does not hold it",
                    program.name, name, context.rank, owner->program.name);
}

llvm::Error RankExecutor::prepareState() {
  std::vector<bool> isReadLater(program.states.size(), false);
  for (const Step &step : steps)
    for (const BufferRef &ref : step.references)
      if (const Buffer &buffer =
              stage->buffers[static_cast<size_t>(ref.buffer)];
          buffer.space == Space::State &&
          step.command->microBatches != MicroBatches::Once)
        isReadLater[static_cast<size_t>(buffer.index)] = true;
  for (size_t b = 0; b < stage->buffers.size(); ++b) {
    const Buffer &buffer = stage->buffers[b];
    if (buffer.space != Space::State || !needsState[b])
      continue;
    progress.setOnHost(RankProgress::preparing);
    if (program.states[static_cast<size_t>(buffer.index)].isMutable) {
      std::shared_ptr<DeviceMemory> &own = ownState[buffer.index];
      if (!own) {
        llvm::Expected<std::shared_ptr<DeviceMemory>> made =
            makeOwnState(buffer.index);
        if (!made)
          return made.takeError();
        own = std::move(*made);
      }
      bases[b] = own->getAddress();
      continue;
    }
    llvm::Expected<std::shared_ptr<const StatePart>> part =
        states.get(buffer.index, context, *transfer, bufferAlignment);
    if (!part)
      return part.takeError();
    bases[b] = (*part)->getAddress();
    memory.stateBytes += (*part)->getSize();
    (isReadLater[static_cast<size_t>(buffer.index)] ? sharedState : firstState)
        .push_back(std::move(*part));
  }
  return llvm::Error::success();
}

} // namespace ax::rt
