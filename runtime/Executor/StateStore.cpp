//===- StateStore.cpp - Weights, loaded part by part ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "StateStore.h"

#include "HeldParts.h"

#include "ax/Runtime/HostMemory.h"
#include "ax/Runtime/StateFiles.h"
#include "ax/Support/Error.h"

#include <cstring>

namespace ax::rt {

StatePart::~StatePart() { host.release(offset, size); }

Part StateStore::partOf(int32_t state, const RankContext &rank) const {
  return rt::partOf(program, describe(state), rank.rank);
}

llvm::Expected<std::unique_ptr<DeviceMemory>>
StateStore::load(int32_t state, const Part &part, Device &device,
                 HostTransfer &transfer) const {
  const HostState &host = states[static_cast<size_t>(state)];
  if (host.pieces) {
    auto loaded = loadPieces(*host.pieces, part, device, transfer);
    if (!loaded)
      return addContext(loaded.takeError(),
                        "state '" + describe(state).name + "'");
    return loaded;
  }
  llvm::Expected<std::unique_ptr<DeviceMemory>> memory =
      host.data ? device.allocate(part.localBytes)
                : device.allocateZeroed(part.localBytes);
  if (!memory)
    return addContext(memory.takeError(),
                      "state '" + describe(state).name + "'");
  if (!host.data)
    return memory;
  if (llvm::Error error = transfer.upload(
          part.box, host.data, (*memory)->getAddress(), part.localBytes))
    return error;
  host.release(0, bytesOf(describe(state)));
  // Other ranks' streams may be the next to read it.
  if (llvm::Error error = transfer.getStream().synchronize())
    return error;
  return memory;
}

llvm::Expected<std::unique_ptr<DeviceMemory>>
StateStore::loadPieces(const PiecedTensor &tensor, const Part &part,
                       Device &device, HostTransfer &transfer) const {
  llvm::Expected<std::unique_ptr<DeviceMemory>> memory =
      device.allocateZeroed(part.localBytes);
  if (!memory)
    return memory;
  DeviceAddress address = (*memory)->getAddress();
  const HostMapping *mapping = device.getHostMapping();
  HostMemory staged;
  if (!mapping) {
    auto allocated = HostMemory::allocate(part.localBytes);
    if (!allocated)
      return allocated.takeError();
    staged = std::move(*allocated);
  } else if (llvm::Error error = transfer.getStream().synchronize()) {
    return error;
  }
  void *to = mapping ? mapping->toHost(address) : staged.getData();
  for (const TensorPiece &piece : tensor.pieces) {
    copyPiece(tensor, piece, part, static_cast<uint8_t *>(to));
    piece.release();
  }
  if (mapping)
    return memory;
  if (llvm::Error error =
          transfer.upload(staged.getData(), address, part.localBytes))
    return error;
  if (llvm::Error error = transfer.getStream().synchronize())
    return error;
  return memory;
}

llvm::Error StateStore::fill(StatePart &result, int32_t state, const Part &part,
                             Device &device, HostTransfer &transfer,
                             int64_t alignment) const {
  const HostState &host = states[static_cast<size_t>(state)];
  if (describe(state).isPrepared && !host.data) {
    if (prepared)
      result.memory = prepared->find(
          {describe(state).name, part.number, device.getMemorySpace()});
    // So in verified plans, but one that was compiled may have been changed.
    if (!result.memory || result.memory->getSize() < part.localBytes)
      return makeErrorf(ExitCode::BadPlan,
                        "state '{0}' is to be prepared, and no program of the "
                        "plan prepares it",
                        describe(state).name);
    result.address = result.memory->getAddress();
    return llvm::Error::success();
  }
  const uint8_t *inPlace = host.data && part.isContiguous()
                               ? host.data + part.contiguousOffset
                               : nullptr;
  if (inPlace && device.getHostMapping() &&
      reinterpret_cast<uintptr_t>(inPlace) %
              static_cast<uintptr_t>(alignment) ==
          0) {
    result.address = device.getHostMapping()->toDevice(inPlace);
    result.host = host;
    result.offset = part.contiguousOffset;
    return llvm::Error::success();
  }
  llvm::Expected<std::unique_ptr<DeviceMemory>> memory =
      load(state, part, device, transfer);
  if (!memory)
    return memory.takeError();
  result.memory = std::move(*memory);
  result.address = result.memory->getAddress();
  return llvm::Error::success();
}

llvm::Expected<std::shared_ptr<const StatePart>>
StateStore::get(int32_t state, const RankContext &rank, HostTransfer &transfer,
                int64_t alignment) {
  Device &device = rank.device;
  Part part = partOf(state, rank);
  // What a device has allocated is aligned for everything.
  if (!device.getHostMapping())
    alignment = bufferAlignment;
  uint64_t identity = 0;
  std::shared_ptr<Entry> entry;
  {
    std::lock_guard<std::mutex> lock(mutex);
    identity =
        identities.try_emplace({state, part.number}, identities.size() + 1)
            .first->second;
    std::shared_ptr<Entry> &wanted =
        entries[{identity, device.getMemorySpace(), alignment}];
    if (!wanted)
      wanted = std::make_shared<Entry>();
    entry = wanted;
  }
  std::lock_guard<std::mutex> lock(entry->mutex);
  if (std::shared_ptr<const StatePart> known = entry->part.lock())
    return known;
  auto result = std::make_shared<StatePart>();
  result->identity = identity;
  result->size = part.localBytes;
  if (llvm::Error error =
          fill(*result, state, part, device, transfer, alignment))
    return error;
  entry->part = result;
  return result;
}

llvm::Expected<std::unique_ptr<DeviceMemory>>
StateStore::copy(int32_t state, const RankContext &rank,
                 HostTransfer &transfer) const {
  return load(state, partOf(state, rank), rank.device, transfer);
}

void StateStore::release(int32_t state, const RankContext &rank) {
  if (prepared)
    prepared->release({describe(state).name, partOf(state, rank).number,
                       rank.device.getMemorySpace()});
}

llvm::Expected<HostTensor> StateStore::readWhole(int32_t state) const {
  const State &described = describe(state);
  const HostState &host = states[static_cast<size_t>(state)];
  if (host.pieces) {
    PiecedTensor tensor = *host.pieces;
    tensor.wanted.reset();
    return tensor.assemble();
  }
  auto tensor = HostTensor::allocate(described.dtype, described.shape);
  if (tensor && host.data)
    std::memcpy(tensor->mutableData(), host.data,
                static_cast<size_t>(bytesOf(described)));
  return tensor;
}

} // namespace ax::rt
