//===- ListPorts.cpp - Inputs and outputs of a command list ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ListPorts.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace ax::rt {

llvm::Error ListPorts::createEvents() {
  if (mapping() || !slots.empty())
    return llvm::Error::success();
  slots.resize(numSlots);
  for (Slot &slot : slots)
    if (llvm::Error error = createEvents(context.device, slot.plain))
      return error;
  return llvm::Error::success();
}

llvm::Error ListPorts::createEvents(Device &device, SlotEvents &events) {
  for (std::unique_ptr<Event> *event :
       {&events.arrived, &events.done, &events.fetched}) {
    auto made = device.createEvent();
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
    auto allocated = context.device.allocate(port.getBytes());
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
  Stream &upload = *streams.upload;
  // After a launch of one micro-batch the slot is that of the step before.
  if (!isLaunched || perStep > 1)
    if (llvm::Error error =
            upload.wait(isLaunched ? *freed : *slots[slotOf(turn)].plain.done))
      return error;
  fill(turn, microBatch);
  isStaged = true;
  return putUp(turn, microBatch);
}

int64_t ListPorts::partOf(const Turn &turn) const {
  return static_cast<int64_t>(turn.step % 2) * perStep + turn.place;
}

void ListPorts::fill(const Turn &turn, int32_t microBatch) {
  if (mapping())
    return;
  for (const Input &input : inputs)
    input.port->pack(microBatch, static_cast<char *>(input.pinned->getData()) +
                                     partOf(turn) * input.stride);
}

llvm::Error ListPorts::putUp(const Turn &turn, int32_t microBatch) {
  size_t slot = slotOf(turn);
  Stream &upload = *streams.upload;
  auto put = [&]() -> llvm::Error {
    for (const Input &input : inputs)
      if (llvm::Error error = upload.upload(
              *input.pinned, partOf(turn) * input.stride,
              input.slots[slot]->getAddress(), input.port->getBytes()))
        return error;
    return llvm::Error::success();
  };
  if (llvm::Error error =
          recorder ? recorder->recordBeside(StreamKind::Upload, upload,
                                            TraceEvent::ports, microBatch, put)
                   : put())
    return error;
  return upload.record(*eventsOf(slot).arrived);
}

llvm::Error ListPorts::bringUp(const Turn &turn, int32_t microBatch) {
  size_t slot = slotOf(turn);
  if (!isCapturing()) {
    if (!isStaged)
      if (llvm::Error error = stage(turn, microBatch))
        return error;
    isStaged = isLaunched = false;
  } else if (turn.place == 0 || inputs.empty()) {
    // They are there when the graph begins.
    return llvm::Error::success();
  } else {
    Slot &used = slots[slot];
    if (llvm::Error error = streams.upload->wait(
            used.isDone ? *used.captured.done : *captureBegun))
      return error;
    if (llvm::Error error = putUp(turn, microBatch))
      return error;
  }
  return slots.empty() || inputs.empty()
             ? llvm::Error::success()
             : streams.compute->wait(*eventsOf(slot).arrived);
}

llvm::Error
ListPorts::open(const Turn &turn, int32_t microBatch,
                llvm::function_ref<void(int32_t, DeviceAddress)> bind) {
  size_t slot = slotOf(turn);
  if (llvm::Error error = bringUp(turn, microBatch))
    return error;
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
  return slots.empty() ? llvm::Error::success() : awaitSlot(slot);
}

llvm::Error ListPorts::awaitSlot(size_t slot) {
  // In a graph only outputs of the same step may be on their way.
  if (outputs.empty() || (isCapturing() && !slots[slot].isFetched))
    return llvm::Error::success();
  return streams.compute->wait(*eventsOf(slot).fetched);
}

llvm::Error ListPorts::close(const Turn &turn, int32_t microBatch) {
  size_t slot = slotOf(turn);
  if (!slots.empty())
    if (llvm::Error error = streams.compute->record(*eventsOf(slot).done))
      return error;
  if (isCapturing() && !slots.empty()) {
    slots[slot].isDone = true;
    // The next step's first micro-batch has the slot of the last but one.
    if (!inputs.empty() && turn.place + 2 == perStep)
      if (llvm::Error error = streams.compute->recordAtLaunch(*freed))
        return error;
  }
  if (mapping())
    return handBack(slot, microBatch);
  if (llvm::none_of(outputs, [&](const Output &output) {
        return output.port->isOwn(microBatch);
      }))
    return llvm::Error::success();
  Stream &download = *streams.download;
  if (llvm::Error error = download.wait(*eventsOf(slot).done))
    return error;
  auto put = [&] { return bringDown(turn, microBatch); };
  if (llvm::Error error =
          recorder ? recorder->recordBeside(StreamKind::Download, download,
                                            TraceEvent::ports, microBatch, put)
                   : put())
    return error;
  slots[slot].isFetched = true;
  return download.record(*eventsOf(slot).fetched);
}

llvm::Error ListPorts::handBack(size_t slot, int32_t microBatch) {
  for (const Output &output : outputs) {
    if (output.slots.empty() || !output.port->isOwn(microBatch))
      continue;
    if (llvm::Error error = streams.compute->synchronize())
      return error;
    output.port->unpack(microBatch,
                        mapping()->toHost(output.slots[slot]->getAddress()));
  }
  return llvm::Error::success();
}

llvm::Error ListPorts::bringDown(const Turn &turn, int32_t microBatch) {
  for (const Output &output : outputs) {
    if (!output.port->isOwn(microBatch))
      continue;
    if (llvm::Error error = streams.download->download(
            output.slots[slotOf(turn)]->getAddress(), *output.pinned,
            turn.place * output.stride, output.port->getBytes()))
      return error;
    if (!isCapturing())
      arrivals.push_back({&output, microBatch, turn.place});
  }
  return llvm::Error::success();
}

llvm::Error ListPorts::awaitOutputs() {
  for (size_t slot = 0; slot < slots.size(); ++slot)
    if (llvm::Error error = awaitSlot(slot))
      return error;
  return llvm::Error::success();
}

size_t ListPorts::getPeriod() const {
  // Slots of the device, and of inputs the two halves of pinned memory.
  bool hasTurns = !inputs.empty() || (!outputs.empty() && perStep % 2 != 0);
  return mapping() || !hasTurns ? 1 : 2;
}

llvm::Error ListPorts::prepareCapture() {
  for (Slot &slot : slots)
    if (llvm::Error error = createEvents(context.device, slot.captured))
      return error;
  auto made = context.device.createEvent();
  if (!made)
    return made.takeError();
  freed = std::move(*made);
  return llvm::Error::success();
}

void ListPorts::beginCapture(const Event &begun) {
  captureBegun = &begun;
  for (Slot &slot : slots)
    slot.isDone = slot.isFetched = false;
}

llvm::Error ListPorts::beginLaunch(const Turn &turn, int32_t microBatch) {
  if (turn.place == 0) {
    isToFill = !isStaged;
    if (!isStaged)
      if (llvm::Error error = stage(turn, microBatch))
        return error;
    isStaged = false;
    isLaunched = true;
    if (!inputs.empty())
      if (llvm::Error error =
              streams.compute->wait(*slots[slotOf(turn)].plain.arrived))
        return error;
  } else if (isToFill) {
    fill(turn, microBatch);
  }
  for (const Output &output : outputs)
    if (output.port->isOwn(microBatch))
      arrivals.push_back({&output, microBatch, turn.place});
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
