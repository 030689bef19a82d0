//===- StoredStates.h - What the ranks of an executor have ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_STOREDSTATES_H
#define AX_RUNTIME_STOREDSTATES_H

#include "ax/Runtime/Device.h"

#include <map>
#include <mutex>

namespace ax::rt {

/// Parts of mutable states, by the state's name, the part's number, and the
/// memory space they lie in. Thread-safe.
class StoredStates {
public:
  struct Key {
    std::string state;
    int64_t part = 0;
    int32_t space = 0;
    bool operator<(const Key &other) const {
      return std::tie(state, part, space) <
             std::tie(other.state, other.part, other.space);
    }
  };

  /// What a rank has. Of ranks that hold equal parts in one space the first's
  /// is kept.
  void add(const Key &key, std::shared_ptr<const DeviceMemory> memory);
  /// Null when there is none.
  std::shared_ptr<const DeviceMemory> find(const Key &key) const;
  /// The same parts: they are freed when both need them no longer.
  std::shared_ptr<StoredStates> share() const;
  /// A rank needs it no longer: when none of them does, it is freed.
  void release(const Key &key);

private:
  struct Stored {
    std::shared_ptr<const DeviceMemory> memory;
    int32_t numHolders = 0;
  };
  mutable std::mutex mutex;
  std::map<Key, Stored> parts;
};

} // namespace ax::rt

#endif // AX_RUNTIME_STOREDSTATES_H
