//===- ListPorts.cpp - Inputs and outputs of a command list ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ListPorts.h"

#include "llvm/Support/MathExtras.h"

namespace ax::rt {

llvm::Error ListPorts::createEvents() {
  if (mapping() || !slots.empty())
    return llvm::Error::success();
  slots.resize(numSlots);
  for (Slot &slot : slots)
    for (std::unique_ptr<Event> *event :
         {&slot.arrived, &slot.done, &slot.fetched}) {
      auto made = context.device.createEvent();
      if (!made)
        return made.takeError();
      *event = std::move(*made);
    }
  return llvm::Error::success();
}

llvm::Error ListPorts::addMemory(Memory &memory, int32_t buffer,
                                 const BoundPort &port, int64_t pinnedParts) {
  memory.buffer = buffer;
  if (mapping() && port.isInPlace())
    return llvm::Error::success();
  for (size_t i = 0, e = mapping() ? 1 : numSlots; i < e; ++i) {
    auto allocated = context.allocate(port.getBytes());
    if (!allocated)
      return allocated.takeError();
    memory.slots.push_back(std::move(*allocated));
    bytes += port.getBytes();
  }
  if (mapping())
    return llvm::Error::success();
  memory.stride = static_cast<int64_t>(
      llvm::alignTo(static_cast<uint64_t>(port.getBytes()), bufferAlignment));
  auto pinned = context.device.allocatePinned(memory.stride * pinnedParts);
  if (!pinned)
    return pinned.takeError();
  memory.pinned = std::move(*pinned);
  return createEvents();
}

llvm::Error ListPorts::addInput(int32_t buffer,
                                std::unique_ptr<BoundInput> port) {
  Input &made = inputs.emplace_back();
  made.port = std::move(port);
  return addMemory(made, buffer, *made.port, 2 * perStep);
}

llvm::Error ListPorts::addOutput(int32_t buffer,
                                 std::unique_ptr<BoundOutput> port) {
  Output &made = outputs.emplace_back();
  made.port = std::move(port);
  arrivals.reserve(outputs.size() * static_cast<size_t>(perStep));
  return addMemory(made, buffer, *made.port, perStep);
}

llvm::Error ListPorts::stage(const Turn &turn, int32_t microBatch) {
  if (mapping() || inputs.empty())
    return llvm::Error::success();
  const Slot &slot = slots[slotOf(turn)];
  Stream &upload = *streams.upload;
  if (llvm::Error error = upload.wait(*slot.done))
    return error;
  auto part = static_cast<int64_t>(turn.step % 2) * perStep + turn.place;
  for (const Input &input : inputs) {
    int64_t offset = part * input.stride;
    input.port->pack(microBatch,
                     static_cast<char *>(input.pinned->getData()) + offset);
    if (llvm::Error error = upload.upload(
            *input.pinned, offset, input.slots[slotOf(turn)]->getAddress(),
            input.port->getBytes()))
      return error;
  }
  isStaged = true;
  return upload.record(*slot.arrived);
}

llvm::Error
ListPorts::open(const Turn &turn, int32_t microBatch,
                llvm::function_ref<void(int32_t, DeviceAddress)> bind) {
  size_t slot = slotOf(turn);
  if (!isStaged)
    if (llvm::Error error = stage(turn, microBatch))
      return error;
  isStaged = false;
  for (const Input &input : inputs) {
    if (input.slots.empty()) {
      bind(input.buffer, mapping()->toDevice(input.port->find(microBatch)));
      continue;
    }
    DeviceAddress address = input.slots[slot]->getAddress();
    if (mapping()) {
      if (llvm::Error error = streams.compute->synchronize())
        return error;
      input.port->pack(microBatch, mapping()->toHost(address));
    }
    bind(input.buffer, address);
  }
  for (const Output &output : outputs)
    bind(output.buffer, output.slots.empty()
                            ? mapping()->toDevice(output.port->find(microBatch))
                            : output.slots[slot]->getAddress());
  if (slots.empty())
    return llvm::Error::success();
  if (!inputs.empty())
    if (llvm::Error error = streams.compute->wait(*slots[slot].arrived))
      return error;
  return awaitSlot(slot);
}

llvm::Error ListPorts::awaitSlot(size_t slot) {
  return outputs.empty() ? llvm::Error::success()
                         : streams.compute->wait(*slots[slot].fetched);
}

llvm::Error ListPorts::close(const Turn &turn, int32_t microBatch) {
  size_t slot = slotOf(turn);
  if (!slots.empty())
    if (llvm::Error error = streams.compute->record(*slots[slot].done))
      return error;
  Stream &download = *streams.download;
  bool isWaiting = false;
  for (const Output &output : outputs) {
    if (output.slots.empty() || !output.port->isOwn(microBatch))
      continue;
    DeviceAddress address = output.slots[slot]->getAddress();
    if (mapping()) {
      if (llvm::Error error = streams.compute->synchronize())
        return error;
      output.port->unpack(microBatch, mapping()->toHost(address));
      continue;
    }
    if (!std::exchange(isWaiting, true))
      if (llvm::Error error = download.wait(*slots[slot].done))
        return error;
    if (llvm::Error error = download.download(address, *output.pinned,
                                              turn.place * output.stride,
                                              output.port->getBytes()))
      return error;
    arrivals.push_back({&output, microBatch, turn.place});
  }
  return isWaiting ? download.record(*slots[slot].fetched)
                   : llvm::Error::success();
}

llvm::Error ListPorts::awaitOutputs() {
  for (size_t slot = 0; slot < slots.size(); ++slot)
    if (llvm::Error error = awaitSlot(slot))
      return error;
  return llvm::Error::success();
}

void ListPorts::collect() {
  for (const Arrival &arrival : arrivals)
    arrival.output->port->unpack(
        arrival.microBatch,
        static_cast<const char *>(arrival.output->pinned->getData()) +
            arrival.place * arrival.output->stride);
  arrivals.clear();
}

} // namespace ax::rt
