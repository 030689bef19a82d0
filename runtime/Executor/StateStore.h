//===- StateStore.h - Weights, loaded part by part --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranks of one process whose devices share a memory space share equal parts. A
// part that lies in one piece where the device works on the host's memory is
// not copied at all.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_STATESTORE_H
#define AX_RUNTIME_STATESTORE_H

#include "HostStates.h"
#include "Parts.h"
#include "RankContext.h"
#include "StoredStates.h"
#include "ax/Runtime/HostTransfer.h"

#include <map>
#include <mutex>

namespace ax::rt {

/// One rank's part of a state, as long as somebody holds it.
class StatePart {
public:
  ~StatePart();
  DeviceAddress getAddress() const { return address; }
  int64_t getSize() const { return size; }
  /// Returns the number of its contents: unique among all parts of one store;
  /// never 0.
  uint64_t getIdentity() const { return identity; }

private:
  friend class StateStore;
  DeviceAddress address;
  int64_t size = 0;
  uint64_t identity = 0;
  std::shared_ptr<const DeviceMemory> memory;
  /// The host's memory, where it is used in place of `memory`, from this byte
  /// on.
  HostState host;
  int64_t offset = 0;
};

/// The parts of states that ranks hold. Thread-safe, but for dropPrepared.
class StateStore {
public:
  /// Prepared states are in `prepared`.
  StateStore(const Program &program, std::vector<HostState> states,
             std::shared_ptr<StoredStates> prepared = nullptr)
      : program(program), states(std::move(states)),
        prepared(std::move(prepared)) {}

  /// The part of a rank, aligned to `alignment` bytes, which its device may
  /// read. `transfer`: of this device.
  llvm::Expected<std::shared_ptr<const StatePart>> get(int32_t state,
                                                       const RankContext &rank,
                                                       HostTransfer &transfer,
                                                       int64_t alignment);
  /// A copy of the rank's own, to write to.
  llvm::Expected<std::unique_ptr<DeviceMemory>>
  copy(int32_t state, const RankContext &rank, HostTransfer &transfer) const;
  /// The rank needs no more of a prepared state than it has got.
  void release(int32_t state, const RankContext &rank);
  /// Drops the prepared states of all ranks. Not while other threads get some.
  void dropPrepared() { prepared.reset(); }
  /// The global tensor as the model had it at first, of a state that is not
  /// prepared.
  llvm::Expected<HostTensor> readWhole(int32_t state) const;

private:
  struct Entry {
    std::mutex mutex;
    std::weak_ptr<const StatePart> part;
  };

  const State &describe(int32_t state) const {
    return program.states[static_cast<size_t>(state)];
  }
  Part partOf(int32_t state, const RankContext &rank) const;
  llvm::Expected<std::unique_ptr<DeviceMemory>>
  load(int32_t state, const Part &part, Device &device,
       HostTransfer &transfer) const;
  /// The same of a state that lies in several places.
  llvm::Expected<std::unique_ptr<DeviceMemory>>
  loadPieces(const PiecedTensor &tensor, const Part &part, Device &device,
             HostTransfer &transfer) const;
  llvm::Error fill(StatePart &result, int32_t state, const Part &part,
                   Device &device, HostTransfer &transfer,
                   int64_t alignment) const;

  const Program &program;
  std::vector<HostState> states;
  std::shared_ptr<StoredStates> prepared;
  std::mutex mutex;
  /// Identities by state and part.
  std::map<std::pair<int32_t, int64_t>, uint64_t> identities;
  /// Entries by identity, memory space and alignment.
  std::map<std::tuple<uint64_t, int32_t, int64_t>, std::shared_ptr<Entry>>
      entries;
};

} // namespace ax::rt

#endif // AX_RUNTIME_STATESTORE_H
