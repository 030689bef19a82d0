//===- GlobalPorts.cpp - Parts of global tensors in this process ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "GlobalPorts.h"

#include "Parts.h"

namespace ax::rt {

namespace {

/// A port's part for each micro-batch.
class PortParts : public BoundPort {
public:
  PortParts(const RankContext &context, int32_t number, const Port &port,
            const RunData *const &data)
      : number(number), data(data), mapping(context.device.getHostMapping()) {
    auto microBatches =
        static_cast<int32_t>(context.program.mesh.numTimeSlices());
    for (int32_t m = 0; m < microBatches; ++m)
      parts.push_back(makePart(port.layout, port.dtype, context.program.mesh,
                               context.coordinates(m)));
  }

  int64_t getBytes() const override { return memory ? memory->getSize() : 0; }

protected:
  /// Parts that cannot be used where they are.
  bool needsMemory(size_t microBatch) const {
    const Part &part = parts[microBatch];
    return !mapping || !part.isContiguous() ||
           part.contiguousOffset % bufferAlignment != 0;
  }
  llvm::Error allocate(const RankContext &context) {
    auto allocated = context.allocate(parts.front().localBytes);
    if (!allocated)
      return allocated.takeError();
    memory = std::move(*allocated);
    return llvm::Error::success();
  }

  /// The port's number among the program's inputs, or outputs.
  int32_t number;
  /// The request's data, which GlobalPorts has: another one for each request.
  const RunData *const &data;
  /// The device's; null where it has none.
  const HostMapping *mapping;
  std::vector<Part> parts;
  /// Null when all parts are used where they are.
  std::unique_ptr<DeviceMemory> memory;
};

class InputParts : public PortParts {
public:
  InputParts(const RankContext &context, int32_t number,
             const RunData *const &data)
      : PortParts(context, number,
                  context.program.inputs[static_cast<size_t>(number)], data) {}

  llvm::Error prepare(const RankContext &context) {
    for (size_t m = 0; m < parts.size(); ++m)
      if (needsMemory(m))
        return allocate(context);
    return llvm::Error::success();
  }

  llvm::Expected<DeviceAddress> open(HostTransfer &transfer,
                                     int32_t microBatch) override {
    const Part &part = parts[static_cast<size_t>(microBatch)];
    const uint8_t *global = data->inputs[static_cast<size_t>(number)];
    if (!memory)
      return mapping->toDevice(global + part.contiguousOffset);
    DeviceAddress to = memory->getAddress();
    if (llvm::Error error =
            transfer.upload(part.box, global, to, part.localBytes))
      return error;
    return to;
  }
  llvm::Error close(HostTransfer &, int32_t) override {
    return llvm::Error::success();
  }
};

class OutputParts : public PortParts {
public:
  OutputParts(const RankContext &context, int32_t number,
              const RunData *const &data)
      : PortParts(context, number,
                  context.program.outputs[static_cast<size_t>(number)], data) {}

  llvm::Error prepare(const RankContext &context) {
    const Port &port = context.program.outputs[static_cast<size_t>(number)];
    const sharding::Mesh &mesh = context.program.mesh;
    bool isNeeded = false;
    for (size_t m = 0; m < parts.size(); ++m) {
      bool isFirst = true;
      for (size_t i = 0; i < context.position && isFirst; ++i)
        isFirst = makePart(port.layout, port.dtype, mesh,
                           mesh.coordinates(context.stage->ranks[i],
                                            static_cast<int32_t>(m)))
                      .number != parts[m].number;
      isOwner.push_back(isFirst);
      isNeeded |= !isFirst || needsMemory(m);
    }
    return isNeeded ? allocate(context) : llvm::Error::success();
  }

  llvm::Expected<DeviceAddress> open(HostTransfer &,
                                     int32_t microBatch) override {
    if (memory)
      return memory->getAddress();
    return mapping->toDevice(
        data->outputs[static_cast<size_t>(number)] +
        parts[static_cast<size_t>(microBatch)].contiguousOffset);
  }
  llvm::Error close(HostTransfer &transfer, int32_t microBatch) override {
    auto m = static_cast<size_t>(microBatch);
    if (!memory || !isOwner[m])
      return llvm::Error::success();
    return transfer.download(parts[m].box, memory->getAddress(),
                             parts[m].localBytes,
                             data->outputs[static_cast<size_t>(number)]);
  }

private:
  /// Whether this rank hands the part over, by micro-batch.
  std::vector<bool> isOwner;
};

template <typename Parts>
llvm::Expected<std::unique_ptr<BoundPort>>
bind(const RankContext &context, int32_t port, const RunData *const &data) {
  auto bound = std::make_unique<Parts>(context, port, data);
  if (llvm::Error error = bound->prepare(context))
    return error;
  return bound;
}

} // namespace

llvm::Expected<std::unique_ptr<BoundPort>>
GlobalPorts::bindInput(int32_t port) {
  return bind<InputParts>(context, port, data);
}

llvm::Expected<std::unique_ptr<BoundPort>>
GlobalPorts::bindOutput(int32_t port) {
  return bind<OutputParts>(context, port, data);
}

} // namespace ax::rt
