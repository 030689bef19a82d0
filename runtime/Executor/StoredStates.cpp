//===- StoredStates.cpp - What the ranks of an executor have --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "StoredStates.h"

namespace ax::rt {

void StoredStates::add(const Key &key,
                       std::shared_ptr<const DeviceMemory> memory) {
  std::lock_guard<std::mutex> lock(mutex);
  Stored &stored = parts[key];
  if (!stored.memory)
    stored.memory = std::move(memory);
  ++stored.numHolders;
}

std::shared_ptr<const DeviceMemory> StoredStates::find(const Key &key) const {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = parts.find(key);
  return found == parts.end() ? nullptr : found->second.memory;
}

std::shared_ptr<StoredStates> StoredStates::share() const {
  std::lock_guard<std::mutex> lock(mutex);
  auto same = std::make_shared<StoredStates>();
  same->parts = parts;
  return same;
}

void StoredStates::release(const Key &key) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = parts.find(key);
  if (found != parts.end() && --found->second.numHolders == 0)
    found->second.memory.reset();
}

} // namespace ax::rt
