//===- RankExecutor.cpp - One rank's memory and commands ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RankExecutor.h"

#include "ax/Runtime/ProfilerRange.h"
#include "ax/Support/Error.h"

#include "llvm/Support/FormatVariadic.h"

#include <thread>

namespace ax::rt {

llvm::Error RankExecutor::fail(llvm::Error error) const {
  // Errors may come late: the device says what it was doing.
  return addContext(std::move(error), describeCommand(progress.getFailed()));
}

std::string RankExecutor::describeCommand(int32_t index) const {
  std::string text =
      "rank " + std::to_string(context.rank) + ", stage '" + stage->name + "'";
  if (index == RankProgress::preparing)
    return text + ", preparing";
  if (index == RankProgress::handingOver)
    return text + ", exchanging outputs";
  bool isBefore = index == RankProgress::starting;
  if (isBefore)
    index = findFirstStep();
  if (index < 0)
    return text;
  const Command &command = *steps[static_cast<size_t>(index)].command;
  return text + (isBefore ? ", before '" : ", '") + command.name + "' (" +
         rt::describe(program, *stage, command) + ")" +
         (flight ? flight->describe(static_cast<size_t>(index)) : "");
}

int32_t RankExecutor::findFirstStep() const {
  for (const Action &action : stage->schedule) {
    auto list = static_cast<size_t>(action.list);
    for (size_t i = firstStep[list]; i < firstStep[list + 1]; ++i)
      if (steps[i].command->isFor(action.microBatch, /*isFirstTime=*/false))
        return static_cast<int32_t>(i);
  }
  return RankProgress::idle;
}

std::string RankExecutor::describeShortly() const {
  int32_t index = progress.getCommand();
  std::string text, exchange;
  if (index == RankProgress::idle)
    text = "between two steps";
  else if (index == RankProgress::preparing)
    text = "preparing";
  else if (index == RankProgress::handingOver)
    text = "exchanging outputs";
  if (index >= 0) {
    const Command &command = *steps[static_cast<size_t>(index)].command;
    // Names of what compiling has added say why, and descriptions shapes.
    llvm::StringRef name = llvm::StringRef(command.name).split(" (").first;
    std::string what = rt::describe(program, *stage, command);
    text = llvm::formatv("in {0} '{1}' of stage '{2}'",
                         llvm::StringRef(what).split(' ').first, shorten(name),
                         stage->name)
               .str();
    exchange = flight ? flight->describe(static_cast<size_t>(index)) : "";
  }
  if (!exchange.empty() || !flight)
    return text + exchange;
  std::string newest = flight->describeNewest();
  return text + (newest.empty() ? "" : ", after " + newest);
}

llvm::Error RankExecutor::start() {
  ProfilerRange range([&] { return "step " + std::to_string(numEnded + 1); });
  // What is done only once, as loading code, is done in the first step.
  llvm::Error error = graphs && numEnded > 0 ? startCaptured() : startPlain();
  return error ? fail(std::move(error)) : std::move(error);
}

llvm::Error RankExecutor::startPlain() {
  if (llvm::Error error = progress.beginRun(*streams.compute))
    return error;
  if (recorder)
    if (llvm::Error error = recorder->beginRun(*streams.compute))
      return error;
  llvm::Error error = runActions();
  if (recorder)
    recorder->endRun();
  return error;
}

llvm::Error RankExecutor::stageNext() {
  for (size_t i = 0; i < stage->schedule.size(); ++i) {
    const Action &action = stage->schedule[i];
    ListPorts &ports = listPorts[static_cast<size_t>(action.list)];
    Turn turn = turnOf(i, numEnded + 1);
    if (turn.place == 0) {
      if (llvm::Error error = ports.stage(turn, action.microBatch))
        return fail(std::move(error));
    } else if (graphs) {
      ports.fill(turn, action.microBatch);
    }
  }
  return llvm::Error::success();
}

llvm::Error RankExecutor::finish() {
  // A request ends when its work has, also of a rank that gives no output:
  // another device may read the states next.
  llvm::Error error = streams.compute->synchronize();
  if (!error)
    // It says itself what was exchanged: the device has gone on since.
    if (llvm::Error late = context.communicator.getLateError())
      return late;
  if (!error && recorder)
    error = recorder->finishRun(trace);
  if (error)
    return fail(std::move(error));
  for (ListPorts &ports : listPorts)
    ports.collect();
  ++numEnded;
  for (const std::shared_ptr<const StatePart> &part : firstState)
    memory.stateBytes -= part->getSize();
  firstState.clear();
  lookForFaults();
  progress.setOnHost(RankProgress::idle);
  return llvm::Error::success();
}

void RankExecutor::settle(std::chrono::steady_clock::time_point until) {
  if (!streams.compute)
    return;
  for (Stream *stream :
       {streams.compute.get(), streams.upload.get(), streams.download.get(),
        &streams.exchange.get(), &streams.send.get(), &streams.receive.get()}) {
    llvm::Expected<bool> done = stream->isDone();
    while (done && !*done && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      done = stream->isDone();
    }
    if (!done)
      llvm::consumeError(done.takeError());
  }
  context.communicator.settle(until);
}

llvm::Error RankExecutor::runActions() {
  if (llvm::Error error = exchangeBefore(0))
    return error;
  for (size_t i = 0; i < stage->schedule.size(); ++i) {
    const Action &action = stage->schedule[i];
    Turn turn = turnOf(i, numEnded);
    if (llvm::Error error = runAction(action, turn))
      return error;
    if (llvm::Error error = exchangeBefore(i + 1))
      return error;
    // What was sent may be an input, whose place the next one has then.
    if (llvm::Error error = listPorts[static_cast<size_t>(action.list)].close(
            turn, action.microBatch))
      return error;
  }
  for (ListPorts &ports : listPorts)
    if (llvm::Error error = ports.awaitOutputs())
      return error;
  return llvm::Error::success();
}

llvm::Error RankExecutor::runAction(const Action &action, const Turn &turn) {
  ProfilerRange range([&] {
    const CommandList &list = stage->lists[static_cast<size_t>(action.list)];
    const std::string &name = list.name.empty() ? stage->name : list.name;
    return list.isOnceAStep
               ? name
               : name + " micro-batch " + std::to_string(action.microBatch);
  });
  if (llvm::Error error = bindBuffers(action, turn))
    return error;
  auto list = static_cast<size_t>(action.list);
  for (size_t i = firstStep[list]; i < firstStep[list + 1]; ++i)
    if (steps[i].command->isFor(action.microBatch, turn.isFirst()))
      if (llvm::Error error =
              runStep(static_cast<int32_t>(i), action.microBatch))
        return error;
  // What is sent lives as long as its list: only then others may have its
  // place.
  if (isSending[list] && !isOrdered())
    if (llvm::Error error = streams.send.leave(*streams.compute))
      return error;
  // The slot is free again.
  for (Incoming &in : incoming) {
    if (in.list != action.list || isOrdered())
      continue;
    if (llvm::Error error = streams.receive.enter(*streams.compute))
      return error;
    if (llvm::Error error = in.receives[in.slot]->start(
            streams.receive.get(),
            {DeviceAddress(), in.slots[in.slot]->getAddress()}))
      return error;
  }
  return llvm::Error::success();
}

llvm::Error RankExecutor::runStep(int32_t index, int32_t microBatch) {
  Step &step = steps[static_cast<size_t>(index)];
  for (size_t i = 0; i < step.references.size(); ++i)
    step.addresses[i] = resolve(step.references[i]);
  // It goes out when the list has ended.
  if (isOrdered() && isSend(step))
    return llvm::Error::success();
  ProfilerRange range([&] { return step.command->name; });
  auto number = static_cast<size_t>(index);
  if (llvm::Error error = beginStep(number, microBatch))
    return error;
  if (llvm::Error error = keepFault(issue(step, microBatch), index, microBatch))
    return error;
  return endStep(number);
}

llvm::Error RankExecutor::beginStep(size_t number, int32_t microBatch) {
  if (flight && flight->follows(number)) {
    // Who asks where the rank is finds the exchange's number.
    if (graphs && graphs->captures())
      graphs->add({/*isEnd=*/false, number, microBatch, 0});
    else
      flight->begin(number, microBatch);
  }
  auto command = static_cast<int32_t>(number);
  if (llvm::Error error = progress.begin(*streams.compute, command))
    return error;
  return recorder ? recorder->begin(StreamKind::Compute, *streams.compute,
                                    command, microBatch)
                  : llvm::Error::success();
}

llvm::Error RankExecutor::endStep(size_t number) {
  if (flight && flight->follows(number)) {
    if (graphs && graphs->captures())
      graphs->add({/*isEnd=*/true, number, 0, progress.getNumCaptured()});
    else
      flight->end(number, progress.getNumIssued());
  }
  if (isBlocking)
    if (llvm::Error error = streams.compute->synchronize())
      return error;
  return recorder ? recorder->end(StreamKind::Compute, *streams.compute)
                  : llvm::Error::success();
}

llvm::Error RankExecutor::putBeside(SideStream &side, Step &step,
                                    int32_t microBatch,
                                    llvm::function_ref<llvm::Error()> put) {
  if (step.recorder) {
    step.recorder->microBatch = microBatch;
    return put();
  }
  return recorder
             ? recorder->recordBeside(
                   side.getKind(), side.get(),
                   static_cast<int32_t>(&step - steps.data()), microBatch, put)
             : put();
}

llvm::Error RankExecutor::keepFault(llvm::Error error, int32_t command,
                                    int32_t microBatch) {
  return llvm::handleErrors(std::move(error), [&](const IndexFault &found) {
    const auto &body = steps[static_cast<size_t>(command)].command->body;
    return faults.keep(
        std::get<IndexCheckDesc>(std::get<LibraryCommand>(body).desc), found,
        microBatch, [&] { return describeCommand(command); });
  });
}

void RankExecutor::lookForFaults() {
  for (size_t i : faultSteps)
    for (const Action &action : stage->schedule)
      if (action.list == steps[i].list)
        faults.look(std::get<FaultCommand>(steps[i].command->body),
                    steps[i].target, action.microBatch,
                    [&] { return describeCommand(static_cast<int32_t>(i)); });
}

llvm::Error RankExecutor::readOwnState(int32_t state, const StridedBox &box,
                                       void *host) {
  const DeviceMemory &own = *ownState.at(state);
  return transfer->download(box, own.getAddress(), own.getSize(), host);
}

std::shared_ptr<DeviceMemory>
RankExecutor::shareOwnState(const std::string &name) const {
  for (const auto &[number, own] : ownState)
    if (program.states[static_cast<size_t>(number)].name == name)
      return own;
  return nullptr;
}

llvm::Error RankExecutor::bindBuffers(const Action &action, const Turn &turn) {
  for (Incoming &in : incoming) {
    if (in.list != action.list)
      continue;
    in.slot = turn.slotOf(in.slots.size());
    for (int32_t buffer : in.buffers)
      bases[static_cast<size_t>(buffer)] = in.slots[in.slot]->getAddress();
  }
  for (const KeptBuffer &buffer : keptBuffers) {
    const Kept &value = stage->kept[static_cast<size_t>(buffer.kept)];
    DeviceMemory &memory = *kept[static_cast<size_t>(buffer.kept)];
    bases[static_cast<size_t>(buffer.buffer)] =
        memory.getAddress() +
        action.microBatch % value.slots * (memory.getSize() / value.slots);
  }
  return listPorts[static_cast<size_t>(action.list)].open(
      turn, action.microBatch, [this](int32_t buffer, DeviceAddress address) {
        bases[static_cast<size_t>(buffer)] = address;
      });
}

llvm::Error RankExecutor::issue(Step &step, int32_t microBatch) {
  Stream &compute = *streams.compute;
  // Puts an exchange beside what is computed, and what is computed behind it.
  auto start = [&](SideStream &side) -> llvm::Error {
    if (llvm::Error error = side.enter(compute))
      return error;
    return putBeside(side, step, microBatch, [&] {
      return step.operation->start(side.get(), step.addresses);
    });
  };
  // `begun`: whose operation it is.
  auto end = [&](SideStream &side, Step &begun, StreamOperation &operation) {
    return putBeside(side, begun, microBatch,
                     [&] { return operation.finish(side.get()); });
  };
  auto finish = [&](SideStream &side, Step &begun,
                    StreamOperation &operation) -> llvm::Error {
    if (llvm::Error error = end(side, begun, operation))
      return error;
    return side.leave(compute);
  };
  const auto &body = step.command->body;
  if (const auto *kernel = std::get_if<KernelCommand>(&body))
    return compute.launch(*step.kernel, step.addresses.data(),
                          step.scalars.data() +
                              static_cast<size_t>(microBatch) *
                                  kernel->scalars.size(),
                          workspace->getAddress());
  if (std::holds_alternative<LibraryCommand>(body))
    return step.hostOp ? step.hostOp->execute(compute, step.addresses.data())
                       : compute.execute(*step.op, step.addresses.data(),
                                         workspace->getAddress());
  if (const auto *copy = std::get_if<CopyCommand>(&body))
    return compute.copyStrided(*copy, step.addresses[0], step.addresses[1]);
  if (const auto *collective = std::get_if<CollectiveCommand>(&body)) {
    llvm::Error error = start(streams.exchange);
    return error || collective->request >= 0
               ? std::move(error)
               : finish(streams.exchange, step, *step.operation);
  }
  if (std::holds_alternative<WaitCommand>(body)) {
    Step &begun = steps[step.target];
    return finish(streams.exchange, begun, *begun.operation);
  }
  if (std::holds_alternative<SendCommand>(body)) {
    if (llvm::Error error = start(streams.send))
      return error;
    return end(streams.send, step, *step.operation);
  }
  if (std::holds_alternative<FaultCommand>(body))
    return faults.bring(compute, step.addresses[0], step.target, microBatch);
  Incoming &in = incoming[step.target];
  return finish(streams.receive, step, *in.receives[in.slot]);
}

} // namespace ax::rt
