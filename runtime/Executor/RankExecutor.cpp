//===- RankExecutor.cpp - One rank's memory and commands ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RankExecutor.h"

#include "ax/Support/Error.h"

namespace ax::rt {

llvm::Error RankExecutor::run() {
  for (const Action &action : stage->schedule)
    if (llvm::Error error = runAction(action))
      return error;
  // A request ends when its work has, also of a rank that gives no output:
  // another device may read the states next.
  return stream->synchronize();
}

llvm::Error RankExecutor::runAction(const Action &action) {
  if (llvm::Error error = bindBuffers(action))
    return error;
  int32_t microBatch = action.microBatch;
  auto list = static_cast<size_t>(action.list);
  for (size_t i = firstStep[list]; i < firstStep[list + 1]; ++i) {
    auto index = static_cast<int32_t>(i);
    beginCommand(index);
    Clock::time_point begin;
    if (tracing)
      begin = Clock::now();
    if (llvm::Error error =
            keepFault(runStep(steps[i], microBatch), index, microBatch))
      return addContext(std::move(error), describeCommand(index));
    countCommand();
    if (tracing)
      trace.events.push_back({index, microBatch, begin, Clock::now()});
  }
  beginCommand(idle);
  for (PortBuffer &output : outputs)
    if (output.list == action.list)
      if (llvm::Error error = output.port->close(*transfer, microBatch))
        return error;
  // The slot is free again.
  for (Incoming &in : incoming) {
    if (in.list != action.list)
      continue;
    if (llvm::Error error = in.receives[in.slot()]->start(
            *stream, {DeviceAddress(), in.slots[in.slot()]->getAddress()}))
      return error;
    ++in.count;
  }
  return llvm::Error::success();
}

static std::string describeFault(const IndexCheckDesc &check,
                                 const IndexFault::Entry &entry) {
  if (check.isCount && entry.index < 0)
    return llvm::formatv("there cannot be {0}", entry.index);
  if (check.isCount)
    return llvm::formatv(
        "there are {0}, and axopt --max gave room for {1} (a "
        "size made of numbers of results has the room that all "
        "or none of them make)",
        entry.index, entry.size - 1);
  return llvm::formatv("index {0} is out of range of a dimension of {1}",
                       entry.index, entry.size);
}

llvm::Error RankExecutor::keepFault(llvm::Error error, int32_t command,
                                    int32_t microBatch) {
  return llvm::handleErrors(
      std::move(error), [&](const IndexFault &found) -> llvm::Error {
        const auto &check = std::get<IndexCheckDesc>(
            std::get<LibraryCommand>(
                steps[static_cast<size_t>(command)].command->body)
                .desc);
        std::vector<int64_t> local(check.indices.sizes.size());
        for (const IndexFault::Entry &entry : found.getEntries()) {
          // There is no 0 to go on with.
          if (entry.size == 0)
            return makeErrorf(ExitCode::RunFailed,
                              "index {0} is out of range of a dimension of {1}",
                              entry.index, entry.size);
          int64_t rest = entry.place;
          for (size_t d = local.size(); d-- > 0; rest /= check.indices.sizes[d])
            local[d] = rest % check.indices.sizes[d];
          auto at =
              sharding::globalIndex(check.layout, program.mesh,
                                    context.coordinates(microBatch), local);
          if (!at)
            continue;
          FirstFault next{check.order, 0, {}};
          for (size_t d = 0; d < at->size(); ++d)
            next.position =
                next.position * check.layout.dims[d].size() + (*at)[d];
          if (fault && !next.isBefore(*fault))
            continue;
          next.message =
              describeCommand(command) + ": " + describeFault(check, entry);
          fault = std::move(next);
        }
        return llvm::Error::success();
      });
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
  return llvm::Error::success();
}

llvm::Error RankExecutor::runStep(Step &step, int32_t microBatch) {
  for (size_t i = 0; i < step.references.size(); ++i)
    step.addresses[i] = resolve(step.references[i]);
  const auto &body = step.command->body;
  if (const auto *kernel = std::get_if<KernelCommand>(&body))
    return stream->launch(*step.kernel, step.addresses.data(),
                          step.scalars.data() +
                              static_cast<size_t>(microBatch) *
                                  kernel->scalars.size());
  if (std::holds_alternative<LibraryCommand>(body))
    return stream->execute(*step.op, step.addresses.data(),
                           workspace->getAddress());
  if (const auto *copy = std::get_if<CopyCommand>(&body))
    return stream->copyStrided(*copy, step.addresses[0], step.addresses[1]);
  if (const auto *collective = std::get_if<CollectiveCommand>(&body)) {
    if (llvm::Error error = step.operation->start(*stream, step.addresses))
      return error;
    return collective->request >= 0 ? llvm::Error::success()
                                    : step.operation->finish(*stream);
  }
  if (std::holds_alternative<WaitCommand>(body))
    return steps[step.target].operation->finish(*stream);
  if (std::holds_alternative<SendCommand>(body)) {
    if (llvm::Error error = step.operation->start(
            *stream, {step.addresses[0], DeviceAddress()}))
      return error;
    return step.operation->finish(*stream);
  }
  Incoming &in = incoming[step.target];
  return in.receives[in.slot()]->finish(*stream);
}

} // namespace ax::rt
