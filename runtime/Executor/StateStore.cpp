//===- StateStore.cpp - Weights, read part by part ------------------------===//

#include "StateStore.h"

#include "ax/Runtime/HostMemory.h"
#include "ax/Runtime/StateFiles.h"

#include "ax/Support/Error.h"

#include <cassert>
#include <cstring>

namespace ax::rt {

void StoredStates::add(const std::string &state, int64_t part,
                       std::shared_ptr<const DeviceMemory> memory) {
  std::lock_guard<std::mutex> lock(mutex);
  Stored &stored = parts[{state, part}];
  if (!stored.memory)
    stored.memory = std::move(memory);
  ++stored.numHolders;
}

std::shared_ptr<const DeviceMemory> StoredStates::find(const std::string &state,
                                                       int64_t part) const {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = parts.find({state, part});
  return found == parts.end() ? nullptr : found->second.memory;
}

void StoredStates::release(const std::string &state, int64_t part) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = parts.find({state, part});
  if (found != parts.end() && --found->second.numHolders == 0)
    found->second.memory.reset();
}

StatePart::~StatePart() {
  if (file)
    file->release(fileOffset, size);
}

llvm::Expected<std::unique_ptr<StateStore>>
StateStore::open(const Program &program, const std::string &folder,
                 std::shared_ptr<StoredStates> prepared) {
  std::unique_ptr<StateStore> store(new StateStore(program));
  store->prepared = std::move(prepared);
  StateFiles files(folder);
  for (const State &state : program.states) {
    Source source;
    bool isMade = state.isPrepared || state.isZeroAtFirst;
    if (isMade && state.value.numBytes() == 0) {
      store->sources.push_back(source);
      continue;
    }
    if (state.file.empty()) {
      if (state.value.numBytes() != bytesOf(state))
        return makeErrorf(ExitCode::BadPlan,
                          "state '{0}': its value has the "
                          "wrong size",
                          state.name);
      source.data = state.value.data();
      store->sources.push_back(source);
      continue;
    }
    auto found = files.find(state);
    if (!found)
      return found.takeError();
    source.file = std::move(found->file);
    source.data = found->bytes.data();
    store->sources.push_back(source);
  }
  return store;
}

Part StateStore::partOf(int32_t state, int32_t rank) const {
  const State &s = program.states[static_cast<size_t>(state)];
  return makePart(s.layout, s.dtype, program.mesh,
                  program.mesh.coordinates(rank));
}

llvm::Expected<std::unique_ptr<DeviceMemory>>
StateStore::load(int32_t state, const Part &part) const {
  const Source &source = sources[static_cast<size_t>(state)];
  llvm::Expected<std::unique_ptr<DeviceMemory>> memory =
      allocateHostMemory(part.localBytes);
  if (!memory)
    return addContext(
        memory.takeError(),
        "state '" + program.states[static_cast<size_t>(state)].name + "'");
  // Fresh memory is zero: so is the padding.
  if (source.data)
    part.box.copy(source.data, (*memory)->getAddress());
  if (source.file) {
    const State &s = program.states[static_cast<size_t>(state)];
    source.file->release(s.offset,
                         *checkedNumElements(s.shape) * byteSize(s.dtype));
  }
  return memory;
}

llvm::Expected<std::shared_ptr<const StatePart>>
StateStore::get(int32_t state, int32_t rank, int64_t alignment) {
  Part part = partOf(state, rank);
  const Source &source = sources[static_cast<size_t>(state)];
  std::shared_ptr<Entry> entry;
  {
    std::lock_guard<std::mutex> lock(mutex);
    // Contents do not depend on the alignment: neither does the identity.
    std::shared_ptr<Entry> &identity = entries[{state, part.number, 0}];
    if (!identity) {
      identity = std::make_shared<Entry>();
      identity->identity = entries.size();
    }
    std::shared_ptr<Entry> &wanted = entries[{state, part.number, alignment}];
    if (!wanted) {
      wanted = std::make_shared<Entry>();
      wanted->identity = identity->identity;
    }
    entry = wanted;
  }
  std::lock_guard<std::mutex> lock(entry->mutex);
  if (std::shared_ptr<const StatePart> known = entry->part.lock())
    return known;
  auto result = std::make_shared<StatePart>();
  result->identity = entry->identity;
  result->size = part.localBytes;
  const State &described = program.states[static_cast<size_t>(state)];
  if (described.isPrepared && !source.data) {
    assert(prepared && "the program that prepares states comes first");
    result->memory = prepared->find(described.name, part.number);
    assert(result->memory && "it prepares all that verified plans load");
    result->data = result->memory->getAddress();
    entry->part = result;
    return result;
  }
  const uint8_t *inPlace = source.data && part.isContiguous()
                               ? source.data + part.contiguousOffset
                               : nullptr;
  if (inPlace && reinterpret_cast<uintptr_t>(inPlace) %
                         static_cast<uintptr_t>(alignment) ==
                     0) {
    result->data = inPlace;
    result->file = source.file;
    result->fileOffset = program.states[static_cast<size_t>(state)].offset +
                         part.contiguousOffset;
  } else {
    llvm::Expected<std::unique_ptr<DeviceMemory>> memory = load(state, part);
    if (!memory)
      return memory.takeError();
    result->memory = std::move(*memory);
    result->data = result->memory->getAddress();
  }
  entry->part = result;
  return result;
}

void StateStore::release(int32_t state, int32_t rank) {
  if (prepared)
    prepared->release(program.states[static_cast<size_t>(state)].name,
                      partOf(state, rank).number);
}

void StateStore::readWhole(int32_t state, void *to) const {
  const State &s = program.states[static_cast<size_t>(state)];
  auto bytes =
      static_cast<size_t>(*checkedNumElements(s.shape) * byteSize(s.dtype));
  if (const uint8_t *data = sources[static_cast<size_t>(state)].data)
    std::memcpy(to, data, bytes);
  else
    std::memset(to, 0, bytes);
}

llvm::Expected<std::unique_ptr<DeviceMemory>> StateStore::copy(int32_t state,
                                                               int32_t rank) {
  return load(state, partOf(state, rank));
}

} // namespace ax::rt
