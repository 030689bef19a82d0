//===- StateStore.h - Weights, read part by part ----------------*- C++ -*-===//
//
// Ranks of one process that hold equal parts share them. A part that lies in
// one piece in its file is not copied at all.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_STATESTORE_H
#define AX_RUNTIME_STATESTORE_H

#include "Parts.h"

#include "ax/Runtime/Device.h"
#include "ax/Runtime/Program.h"
#include "ax/Support/MappedFile.h"

#include <map>
#include <mutex>

namespace ax::rt {

/// Thread-safe.
class StoredStates {
public:
  /// What a rank has. Of ranks that hold equal parts the first's is kept.
  void add(const std::string &state, int64_t part,
           std::shared_ptr<const DeviceMemory> memory);
  /// Null when there is none.
  std::shared_ptr<const DeviceMemory> find(const std::string &state,
                                           int64_t part) const;
  /// A rank needs it no longer: when none of them does, it is freed.
  void release(const std::string &state, int64_t part);

private:
  struct Stored {
    std::shared_ptr<const DeviceMemory> memory;
    int32_t numHolders = 0;
  };
  mutable std::mutex mutex;
  std::map<std::pair<std::string, int64_t>, Stored> parts;
};

/// One rank's part of a state, as long as somebody holds it.
class StatePart {
public:
  ~StatePart();
  const void *getData() const { return data; }
  int64_t getSize() const { return size; }
  /// Unique among all parts of one store; never 0.
  uint64_t getIdentity() const { return identity; }

private:
  friend class StateStore;
  const void *data = nullptr;
  int64_t size = 0;
  uint64_t identity = 0;
  std::shared_ptr<const DeviceMemory> memory;
  /// Pages of the file that are dropped with the part.
  std::shared_ptr<MappedFile> file;
  int64_t fileOffset = 0;
};

class StateStore {
public:
  /// Opens the files; an error when a state is not wholly inside its file.
  /// Prepared states are in `prepared`.
  static llvm::Expected<std::unique_ptr<StateStore>>
  open(const Program &program, const std::string &folder,
       std::shared_ptr<StoredStates> prepared = nullptr);

  /// The part of `rank`, aligned to `alignment` bytes. Thread-safe.
  llvm::Expected<std::shared_ptr<const StatePart>>
  get(int32_t state, int32_t rank, int64_t alignment);
  /// The rank needs no more of a prepared state than it has got.
  void release(int32_t state, int32_t rank);
  /// Likewise of all ranks and states. Not while other threads get some.
  void dropPrepared() { prepared.reset(); }
  /// The global tensor as it was at first, of a state that is not prepared.
  void readWhole(int32_t state, void *to) const;
  /// A copy of the rank's own, to write to.
  llvm::Expected<std::unique_ptr<DeviceMemory>> copy(int32_t state,
                                                     int32_t rank);

private:
  explicit StateStore(const Program &program) : program(program) {}
  struct Source {
    std::shared_ptr<MappedFile> file;
    const uint8_t *data = nullptr;
  };
  struct Entry {
    std::mutex mutex;
    uint64_t identity = 0;
    std::weak_ptr<const StatePart> part;
  };

  Part partOf(int32_t state, int32_t rank) const;
  llvm::Expected<std::unique_ptr<DeviceMemory>> load(int32_t state,
                                                     const Part &part) const;

  const Program &program;
  std::shared_ptr<StoredStates> prepared;
  std::vector<Source> sources;
  std::mutex mutex;
  std::map<std::tuple<int32_t, int64_t, int64_t>, std::shared_ptr<Entry>>
      entries;
};

} // namespace ax::rt

#endif // AX_RUNTIME_STATESTORE_H
