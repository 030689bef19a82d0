//===- DeviceCollective.cpp - Collectives over memory of devices ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// As LocalCollective, but that streams do the work, and the host only puts it
// there. Every member records an event where its tensors may be used, and
// publishes it with their addresses. When all have, each lets its stream wait
// for these events and puts its part of the work behind them: pieces that it
// copies from others' sources, or a slice that it reduces for all. Behind that
// each records another event, for which all streams wait at the end, so that
// what comes next may overwrite sources and finds destinations.
//
// Nobody waits for an event that was not recorded before: whatever order
// devices do their work in, they get to its end. Events are recorded anew in
// the next run, which a member starts when it has seen `done` of all others: by
// then they have told their streams to wait.
//
//===----------------------------------------------------------------------===//

#include "LocalWorld.h"
#include "ax/Runtime/CollectivePieces.h"
#include "ax/Runtime/Program.h"

#include "ax/Support/Error.h"

#include <algorithm>

namespace ax::rt {

namespace {

class DeviceCollective : public StreamOperation {
public:
  DeviceCollective(std::shared_ptr<LocalWorld> world, int32_t rank,
                   std::shared_ptr<Group> group,
                   std::shared_ptr<LocalCollectiveState> state)
      : world(std::move(world)), rank(rank), group(std::move(group)),
        state(std::move(state)) {}

  llvm::Error prepare(const Kernel *reduction);
  llvm::Error start(Stream &stream,
                    llvm::ArrayRef<DeviceAddress> addresses) override;
  llvm::Error finish(Stream &stream) override;

private:
  /// A box of one member's source, as a stream copies it.
  struct Copy {
    int32_t peer = 0;
    int64_t sourceOffset = 0, destinationOffset = 0;
    CopyCommand box;
  };
  /// Rows that this member reduces, for itself or, in an all-reduce, for all.
  struct Reduction {
    std::unique_ptr<DeviceKernel> kernel;
    int64_t sourceOffset = 0, destinationOffset = 0;
    int64_t scalars[reductionKernel::numScalars] = {};
  };
  /// One tensor.
  struct Part {
    /// So many bytes of the destination become zero first.
    int64_t clearedBytes = 0;
    std::vector<Copy> copies;
    Reduction reduction;
  };

  int32_t numMembers() const { return group->getSize(); }
  DeviceMember &member(int32_t index) const {
    return state->onDevices[static_cast<size_t>(index)];
  }
  DeviceMember &self() const { return member(group->getIndex()); }
  size_t numParts() const { return state->specs.size(); }

  llvm::Error prepareReduction(const CollectiveSpec &spec,
                               const CollectivePlan &plan, const Kernel &kernel,
                               Reduction &reduction);
  /// Until all members' words are there, and this stream waits for what they
  /// have recorded before.
  llvm::Error meet(Stream &stream, WaitWord DeviceMember::*word,
                   std::unique_ptr<Event> DeviceMember::*event);
  llvm::Error runPart(Stream &stream, size_t number);
  llvm::Error reduce(Stream &stream, size_t number);

  std::shared_ptr<LocalWorld> world;
  int32_t rank;
  std::shared_ptr<Group> group;
  std::shared_ptr<LocalCollectiveState> state;
  uint32_t runs = 0;
  std::vector<Part> parts;
  /// Of a kernel, filled for each tensor.
  std::vector<DeviceAddress> buffers;
};

llvm::Error DeviceCollective::prepare(const Kernel *reduction) {
  Device &device = world->getDevice(rank);
  for (std::unique_ptr<Event> *event : {&self().isReady, &self().isDone}) {
    auto made = device.createEvent();
    if (!made)
      return made.takeError();
    *event = std::move(*made);
  }
  for (const CollectiveSpec &spec : state->specs) {
    Part &part = parts.emplace_back();
    CollectivePlan plan = planCollective(spec, numMembers(), group->getIndex());
    if (plan.zeroFirst)
      part.clearedBytes = destinationBytes(spec);
    if (reduces(spec.kind)) {
      if (llvm::Error error =
              prepareReduction(spec, plan, *reduction, part.reduction))
        return error;
      continue;
    }
    for (const CollectivePiece &piece : plan.pieces)
      part.copies.push_back({piece.peer, piece.box.sourceOffset,
                             piece.box.destinationOffset, copyOf(piece.box)});
  }
  self().sources.resize(numParts());
  self().destinations.resize(numParts());
  if (reduction)
    buffers.reserve(reduction->arguments.size());
  return llvm::Error::success();
}

llvm::Error DeviceCollective::prepareReduction(const CollectiveSpec &spec,
                                               const CollectivePlan &plan,
                                               const Kernel &kernel,
                                               Reduction &reduction) {
  int64_t size = byteSize(spec.dtype), rows = 1, rowSize = 0;
  int64_t sourceStride = 0, destinationStride = 0;
  if (spec.kind == CollectiveKind::AllReduce) {
    auto [begin, end] =
        sliceOf(sourceBytes(spec) / size, numMembers(), group->getIndex());
    rowSize = end - begin;
    reduction.sourceOffset = reduction.destinationOffset = begin * size;
  } else if (!plan.pieces.empty()) {
    // But for the dimension that is scattered all are whole: those before it
    // are one, and so are those behind it.
    const StridedBox &box = plan.pieces.front().box;
    assert(box.getDims().size() <= 1);
    rowSize = box.getRunBytes() / size;
    for (const StridedBox::Dim &dim : box.getDims()) {
      rows = dim.size;
      sourceStride = dim.sourceStride / size;
      destinationStride = dim.destinationStride / size;
    }
    reduction.sourceOffset = box.sourceOffset;
    reduction.destinationOffset = box.destinationOffset;
  }
  if (rowSize == 0)
    return llvm::Error::success();
  const int64_t scalars[] = {rows, rowSize, sourceStride, destinationStride};
  std::copy(std::begin(scalars), std::end(scalars), reduction.scalars);
  // More threads than elements would have nothing to do.
  Kernel fitting = kernel;
  int64_t threads = kernel.launch.threadsPerBlock;
  fitting.launch.blocks =
      std::min(kernel.launch.blocks, (rows * rowSize + threads - 1) / threads);
  auto loaded = world->getDevice(rank).loadKernel(fitting);
  if (!loaded)
    return loaded.takeError();
  reduction.kernel = std::move(*loaded);
  return llvm::Error::success();
}

llvm::Error DeviceCollective::start(Stream &stream,
                                    llvm::ArrayRef<DeviceAddress> addresses) {
  DeviceMember &me = self();
  ++runs;
  std::copy_n(addresses.begin(), numParts(), me.sources.begin());
  std::copy_n(addresses.begin() + numParts(), numParts(),
              me.destinations.begin());
  if (llvm::Error error = stream.record(*me.isReady))
    return error;
  me.ready.set(runs);
  return llvm::Error::success();
}

llvm::Error
DeviceCollective::meet(Stream &stream, WaitWord DeviceMember::*word,
                       std::unique_ptr<Event> DeviceMember::*event) {
  for (int32_t i = 0; i < numMembers(); ++i) {
    if (i == group->getIndex())
      continue;
    WaitResult result = (member(i).*word).waitFor(runs, world->getPolicy());
    if (result != WaitResult::Reached)
      return world->waitError(
          result, rank, group->getRanks()[static_cast<size_t>(i)],
          toString(state->specs) + " '" + state->name + "'");
    if (llvm::Error error = stream.wait(*(member(i).*event)))
      return error;
  }
  return llvm::Error::success();
}

llvm::Error DeviceCollective::finish(Stream &stream) {
  if (llvm::Error error =
          meet(stream, &DeviceMember::ready, &DeviceMember::isReady))
    return error;
  for (size_t i = 0; i < numParts(); ++i)
    if (llvm::Error error = runPart(stream, i))
      return error;
  if (llvm::Error error = stream.record(*self().isDone))
    return error;
  self().done.set(runs);
  return meet(stream, &DeviceMember::done, &DeviceMember::isDone);
}

llvm::Error DeviceCollective::runPart(Stream &stream, size_t number) {
  const Part &part = parts[number];
  DeviceAddress destination = self().destinations[number];
  if (part.clearedBytes)
    if (llvm::Error error = stream.clear(destination, part.clearedBytes))
      return error;
  for (const Copy &copy : part.copies)
    if (llvm::Error error = stream.copyStrided(
            copy.box, member(copy.peer).sources[number] + copy.sourceOffset,
            destination + copy.destinationOffset))
      return error;
  return part.reduction.kernel ? reduce(stream, number)
                               : llvm::Error::success();
}

llvm::Error DeviceCollective::reduce(Stream &stream, size_t number) {
  const Reduction &reduction = parts[number].reduction;
  buffers.clear();
  for (int32_t i = 0; i < numMembers(); ++i)
    buffers.push_back(member(i).sources[number] + reduction.sourceOffset);
  bool isForAll = state->specs.front().kind == CollectiveKind::AllReduce;
  for (int32_t i = 0; i < numMembers(); ++i)
    if (isForAll || i == group->getIndex())
      buffers.push_back(member(i).destinations[number] +
                        reduction.destinationOffset);
  return stream.launch(*reduction.kernel, buffers.data(), reduction.scalars,
                       DeviceAddress());
}

} // namespace

llvm::Expected<std::unique_ptr<StreamOperation>>
makeDeviceCollective(std::shared_ptr<LocalWorld> world, int32_t rank,
                     std::shared_ptr<Group> group,
                     std::shared_ptr<LocalCollectiveState> state,
                     const Kernel *reduction) {
  auto made = std::make_unique<DeviceCollective>(
      std::move(world), rank, std::move(group), std::move(state));
  if (llvm::Error error = made->prepare(reduction))
    return error;
  return made;
}

} // namespace ax::rt
