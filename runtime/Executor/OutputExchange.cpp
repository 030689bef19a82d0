//===- OutputExchange.cpp - Outputs that go to other processes ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "OutputExchange.h"

#include "PreparedExchanges.h"

#include "ax/Support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <cstring>

namespace ax::rt {

bool isEverywhere(const Port &port) { return port.role || port.shape.empty(); }

void OutputBundle::Item::unpack(const uint8_t *message, uint8_t *global) const {
  for (size_t m = 0; m < parts.size(); ++m)
    if (offsets[m] >= 0)
      parts[m].box.copyBack(global, message + offsets[m]);
}

int64_t OutputBundle::contiguousOffset() const {
  if (items.size() != 1)
    return -1;
  const Item &item = items.front();
  const Part *only = nullptr;
  for (size_t m = 0; m < item.parts.size(); ++m) {
    if (item.offsets[m] < 0)
      continue;
    if (only && only->number != item.parts[m].number)
      return -1;
    only = &item.parts[m];
  }
  return only->contiguousOffset;
}

/// Of an output that is the same in several micro-batches there is one part.
static void addItem(OutputBundle &bundle, const Program &program, int32_t rank,
                    int32_t output, const std::vector<bool> &isOwner) {
  const Port &port = program.outputs[static_cast<size_t>(output)];
  OutputBundle::Item item;
  item.output = output;
  item.parts = partsOf(program, port, rank);
  std::map<int64_t, int64_t> offsets;
  for (size_t m = 0; m < item.parts.size(); ++m) {
    if (!isOwner[m]) {
      item.offsets.push_back(-1);
      continue;
    }
    auto begin = static_cast<int64_t>(llvm::alignTo(
        static_cast<uint64_t>(bundle.bytes), uint64_t(bufferAlignment)));
    auto [at, isNew] = offsets.try_emplace(item.parts[m].number, begin);
    item.offsets.push_back(at->second);
    if (isNew)
      bundle.bytes = begin + item.parts[m].localBytes;
  }
  bundle.items.push_back(std::move(item));
}

/// What a rank hands over, or of that what goes everywhere; tags are behind
/// those of transfers.
static std::vector<OutputBundle> bundlesOf(const Program &program,
                                           const UsedValues &used,
                                           OutputOwners &owners, int32_t rank,
                                           bool everywhereAlone) {
  auto tag = static_cast<int64_t>(program.transfers.size());
  OutputBundle common;
  common.tag = tag++;
  common.name = "outputs of rank " + std::to_string(rank);
  common.isEverywhere = true;
  std::vector<OutputBundle> bundles;
  const StageProgram &stage = stageOf(program, rank);
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    auto output = static_cast<int32_t>(i);
    const Port &port = program.outputs[i];
    OutputBundle own;
    own.tag = tag++;
    own.name = "output '" + port.name + "'";
    if ((everywhereAlone && !isEverywhere(port)) ||
        !used.isUsed(stage, Space::Output, output))
      continue;
    std::vector<bool> isOwner = owners.find(output, rank);
    if (llvm::is_contained(isOwner, true))
      addItem(isEverywhere(port) ? common : own, program, rank, output,
              isOwner);
    if (!own.items.empty())
      bundles.push_back(std::move(own));
  }
  if (!common.items.empty())
    bundles.push_back(std::move(common));
  return bundles;
}

bool OutputExchange::isFirstOfProcess(int32_t rank) const {
  for (int32_t other = 0; other < rank; ++other)
    if (world.processOf(other) == world.processOf(rank))
      return false;
  return true;
}

llvm::Error OutputExchange::prepare() {
  if (llvm::Error error = prepareSends())
    return error;
  return prepareReceives();
}

llvm::Error
OutputExchange::Message::start(llvm::ArrayRef<const void *> sources,
                               llvm::ArrayRef<void *> destinations) {
  flight->begin(/*microBatch=*/0, /*isWaited=*/false);
  return operation->start(sources, destinations);
}

llvm::Error OutputExchange::Message::wait() {
  flight->wait();
  if (llvm::Error error = operation->wait())
    return addContext(std::move(error), flight->describe(FlightPlace()));
  flight->finish(/*count=*/0);
  return llvm::Error::success();
}

llvm::Expected<OutputExchange::Message>
OutputExchange::makeMessage(llvm::Expected<std::unique_ptr<Operation>> prepared,
                            const OutputBundle &bundle, const char *kind,
                            const std::vector<int32_t> &ranks) const {
  if (!prepared)
    return prepared.takeError();
  FlightOperation operation;
  operation.name = bundle.name;
  operation.kind = kind;
  operation.what = kind + (" " + bundle.name);
  operation.program = context.program.name;
  operation.stage = context.stage->name;
  operation.bytes = bundle.bytes;
  operation.tag = bundle.tag;
  return Message{std::move(*prepared),
                 std::make_unique<FlightExchange>(
                     log, std::move(operation),
                     context.program.name + ": " + bundle.name, ranks,
                     /*isTransfer=*/true)};
}

void OutputExchange::list(PreparedExchanges &to) const {
  auto add = [&](const Message &message) {
    to.add(*message.flight);
    to.addStart(*message.flight, /*microBatch=*/0);
  };
  for (const Outgoing &out : outgoing)
    for (const Message &send : out.sends)
      add(send);
  // Of one there are several, for requests in flight.
  for (const Incoming &in : incoming)
    add(in.receives.front());
}

llvm::Error OutputExchange::prepareSends() {
  const Program &program = context.program;
  for (OutputBundle &bundle : bundlesOf(program, used, owners, context.rank,
                                        /*everywhereAlone=*/world.isFirst())) {
    Outgoing &out = outgoing.emplace_back();
    out.bundle = std::move(bundle);
    llvm::Expected<HostMemory> memory = HostMemory::allocate(out.bundle.bytes);
    if (!memory)
      return memory.takeError();
    out.message = std::move(*memory);
    for (int32_t peer = 0; peer < program.mesh.numRanks(); ++peer) {
      int32_t process = world.processOf(peer);
      if (!isFirstOfProcess(peer) || process == world.getPlace().process ||
          (process != 0 && !out.bundle.isEverywhere))
        continue;
      auto send = makeMessage(
          context.communicator.prepareSend(peer, out.bundle.tag,
                                           out.bundle.bytes, out.bundle.name),
          out.bundle, "send", {context.rank, peer});
      if (!send)
        return send.takeError();
      out.sends.push_back(std::move(*send));
    }
  }
  return llvm::Error::success();
}

llvm::Error OutputExchange::prepareReceives() {
  const Program &program = context.program;
  if (!isFirstOfProcess(context.rank))
    return llvm::Error::success();
  for (int32_t peer = 0; peer < program.mesh.numRanks(); ++peer) {
    if (world.processOf(peer) == world.getPlace().process)
      continue;
    for (OutputBundle &bundle : bundlesOf(program, used, owners, peer,
                                          /*everywhereAlone=*/!world.isFirst()))
      incoming.push_back({peer, std::move(bundle), {}, {}});
  }
  bool comesBack = llvm::any_of(program.transfers, [](const Transfer &value) {
    return value.toStage < value.fromStage;
  });
  if (!comesBack && !incoming.empty())
    lag = std::min(program.stages.size() - 1 -
                       static_cast<size_t>(context.stageIndex),
                   static_cast<size_t>(maxInFlight) - 1);
  for (Incoming &in : incoming)
    for (uint64_t i = 0; i <= lag; ++i) {
      auto receive = makeMessage(
          context.communicator.prepareReceive(in.rank, in.bundle.tag,
                                              in.bundle.bytes, in.bundle.name),
          in.bundle, "receive", {in.rank, context.rank});
      if (!receive)
        return receive.takeError();
      in.receives.push_back(std::move(*receive));
      if (in.bundle.contiguousOffset() >= 0)
        continue;
      llvm::Expected<HostMemory> memory = HostMemory::allocate(in.bundle.bytes);
      if (!memory)
        return memory.takeError();
      in.messages.push_back(std::move(*memory));
    }
  return llvm::Error::success();
}

const OutputBundle::Item *OutputExchange::find(int32_t output,
                                               uint8_t *&message) const {
  for (const Outgoing &out : outgoing)
    for (const OutputBundle::Item &item : out.bundle.items)
      if (item.output == output) {
        message = out.data();
        return &item;
      }
  return nullptr;
}

llvm::Error OutputExchange::receive(uint64_t number, const RunData &data) {
  size_t slot = number % (lag + 1);
  for (Incoming &in : incoming) {
    int64_t direct = in.bundle.contiguousOffset();
    void *to = direct < 0 ? in.messages[slot].getData()
                          : data.outputs[static_cast<size_t>(
                                in.bundle.items.front().output)] +
                                direct;
    if (llvm::Error error = in.receives[slot].start({}, to))
      return error;
  }
  return llvm::Error::success();
}

llvm::Error OutputExchange::send(const RunData &data) {
  for (Outgoing &out : outgoing)
    for (Message &send : out.sends)
      if (llvm::Error error =
              send.start(static_cast<const void *>(out.data()), {}))
        return error;
  for (Outgoing &out : outgoing) {
    if (out.bundle.isEverywhere)
      for (const OutputBundle::Item &item : out.bundle.items)
        item.unpack(out.data(), data.outputs[static_cast<size_t>(item.output)]);
    for (Message &send : out.sends)
      if (llvm::Error error = send.wait())
        return error;
  }
  return llvm::Error::success();
}

llvm::Error OutputExchange::complete(uint64_t number, const RunData &data) {
  size_t slot = number % (lag + 1);
  for (Incoming &in : incoming) {
    if (llvm::Error error = in.receives[slot].wait())
      return error;
    if (in.messages.empty())
      continue;
    for (const OutputBundle::Item &item : in.bundle.items)
      item.unpack(static_cast<const uint8_t *>(in.messages[slot].getData()),
                  data.outputs[static_cast<size_t>(item.output)]);
  }
  return llvm::Error::success();
}

} // namespace ax::rt
