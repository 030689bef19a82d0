//===- RankExecutor.cpp - One rank's memory and commands ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RankExecutor.h"

#include "ax/Support/Error.h"

namespace ax::rt {

llvm::Error RankExecutor::run() {
  llvm::Error error = progress.beginRun(*streams.compute);
  if (!error)
    error = runActions();
  // A request ends when its work has, also of a rank that gives no output:
  // another device may read the states next.
  if (!error)
    error = streams.compute->synchronize();
  if (!error && recorder)
    error = recorder->finishRun(trace);
  // Errors may come late: the device says what it was doing.
  if (error)
    return addContext(std::move(error), describe());
  lookForFaults();
  progress.setOnHost(RankProgress::idle);
  return llvm::Error::success();
}

llvm::Error RankExecutor::runActions() {
  if (recorder)
    if (llvm::Error error = recorder->beginRun(*streams.compute))
      return error;
  for (const Action &action : stage->schedule)
    if (llvm::Error error = runAction(action))
      return error;
  return llvm::Error::success();
}

llvm::Error RankExecutor::runAction(const Action &action) {
  if (llvm::Error error = bindBuffers(action))
    return error;
  auto list = static_cast<size_t>(action.list);
  for (size_t i = firstStep[list]; i < firstStep[list + 1]; ++i)
    if (llvm::Error error = runStep(static_cast<int32_t>(i), action.microBatch))
      return error;
  if (llvm::Error error = closeOutputs(action))
    return error;
  // The slot is free again.
  for (Incoming &in : incoming) {
    if (in.list != action.list)
      continue;
    if (llvm::Error error = streams.receive.enter(*streams.compute))
      return error;
    if (llvm::Error error = in.receives[in.slot()]->start(
            streams.receive.get(),
            {DeviceAddress(), in.slots[in.slot()]->getAddress()}))
      return error;
    ++in.count;
  }
  return llvm::Error::success();
}

llvm::Error RankExecutor::runStep(int32_t index, int32_t microBatch) {
  Step &step = steps[static_cast<size_t>(index)];
  for (size_t i = 0; i < step.references.size(); ++i)
    step.addresses[i] = resolve(step.references[i]);
  if (llvm::Error error = progress.begin(*streams.compute, index))
    return error;
  if (recorder)
    if (llvm::Error error =
            recorder->begin(*streams.compute, index, microBatch))
      return error;
  if (llvm::Error error = keepFault(issue(step, microBatch), index, microBatch))
    return error;
  if (isBlocking)
    if (llvm::Error error = streams.compute->synchronize())
      return error;
  return recorder ? recorder->end(*streams.compute) : llvm::Error::success();
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

llvm::Error RankExecutor::bindBuffers(const Action &action) {
  for (Incoming &in : incoming)
    for (int32_t buffer : in.buffers)
      bases[static_cast<size_t>(buffer)] = in.slots[in.slot()]->getAddress();
  for (const KeptBuffer &buffer : keptBuffers) {
    const Kept &value = stage->kept[static_cast<size_t>(buffer.kept)];
    DeviceMemory &memory = *kept[static_cast<size_t>(buffer.kept)];
    bases[static_cast<size_t>(buffer.buffer)] =
        memory.getAddress() +
        action.microBatch % value.slots * (memory.getSize() / value.slots);
  }
  return openPorts(action);
}

llvm::Error RankExecutor::openPorts(const Action &action) {
  if (inputs.empty() && outputs.empty())
    return llvm::Error::success();
  if (llvm::Error error = streams.copy.enter(*streams.compute))
    return error;
  auto open = [&](PortBuffer &port) -> llvm::Error {
    llvm::Expected<DeviceAddress> part =
        port.port->open(*transfer, action.microBatch);
    if (!part)
      return part.takeError();
    bases[static_cast<size_t>(port.buffer)] = *part;
    return llvm::Error::success();
  };
  for (PortBuffer &input : inputs)
    if (input.list == action.list)
      if (llvm::Error error = open(input))
        return error;
  for (PortBuffer &output : outputs)
    if (llvm::Error error = open(output))
      return error;
  return streams.copy.leave(*streams.compute);
}

llvm::Error RankExecutor::closeOutputs(const Action &action) {
  for (PortBuffer &output : outputs) {
    if (output.list != action.list)
      continue;
    if (llvm::Error error = streams.copy.enter(*streams.compute))
      return error;
    if (llvm::Error error = output.port->close(*transfer, action.microBatch))
      return error;
    if (llvm::Error error = streams.copy.leave(*streams.compute))
      return error;
  }
  return llvm::Error::success();
}

llvm::Error RankExecutor::issue(Step &step, int32_t microBatch) {
  Stream &compute = *streams.compute;
  // Puts an exchange beside what is computed, and what is computed behind it.
  auto start = [&](SideStream &side) -> llvm::Error {
    if (llvm::Error error = side.enter(compute))
      return error;
    return step.operation->start(side.get(), step.addresses);
  };
  auto finish = [&](SideStream &side,
                    StreamOperation &operation) -> llvm::Error {
    if (llvm::Error error = operation.finish(side.get()))
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
               : finish(streams.exchange, *step.operation);
  }
  if (std::holds_alternative<WaitCommand>(body))
    return finish(streams.exchange, *steps[step.target].operation);
  if (std::holds_alternative<SendCommand>(body)) {
    if (llvm::Error error = start(streams.send))
      return error;
    return finish(streams.send, *step.operation);
  }
  if (std::holds_alternative<FaultCommand>(body))
    return faults.bring(compute, step.addresses[0], step.target, microBatch);
  Incoming &in = incoming[step.target];
  return finish(streams.receive, *in.receives[in.slot()]);
}

} // namespace ax::rt
