//===- Memory.cpp - Addresses of the simulated GPU ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Memory.h"

#include <algorithm>
#include <sys/mman.h>

namespace simgpu {

/// What the driver aligns memory to.
static constexpr size_t alignment = 512;

static size_t aligned(size_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

unsigned char *Allocations::add(uintptr_t address, size_t bytes) {
  GuardedBytes made(bytes);
  unsigned char *memory = made.data();
  if (!memory)
    return nullptr;
  allocations.emplace(address ? address : reinterpret_cast<uintptr_t>(memory),
                      std::move(made));
  used += bytes;
  return memory;
}

const std::pair<const uintptr_t, GuardedBytes> *
Allocations::around(uintptr_t address) const {
  auto next = allocations.upper_bound(address);
  if (next == allocations.begin())
    return nullptr;
  const auto &found = *std::prev(next);
  return address - found.first <= found.second.size() ? &found : nullptr;
}

unsigned char *Allocations::find(uintptr_t address, size_t bytes) const {
  const auto *found = around(address);
  if (!found)
    return nullptr;
  size_t offset = address - found->first;
  return bytes <= found->second.size() - offset ? found->second.data() + offset
                                                : nullptr;
}

Range Allocations::startingAt(uintptr_t address) const {
  auto found = allocations.find(address);
  if (found == allocations.end())
    return {};
  return {address, address + found->second.size()};
}

bool Allocations::free(uintptr_t address) {
  auto found = allocations.find(address);
  bool isIntact = found->second.isPatternIntact();
  used -= found->second.size();
  allocations.erase(found);
  return isIntact;
}

CardMemory::CardMemory(size_t size) : size(size) {
  size_t bytes = std::max(4 * aligned(size), size_t(64) << 30);
  void *pages = mmap(nullptr, bytes, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages != MAP_FAILED) {
    reserved.begin = reinterpret_cast<uintptr_t>(pages);
    reserved.end = reserved.begin + bytes;
  }
  cursor = reserved.begin;
}

CardMemory::~CardMemory() {
  if (reserved.begin)
    munmap(reinterpret_cast<void *>(reserved.begin),
           reserved.end - reserved.begin);
}

uintptr_t CardMemory::findGap(uintptr_t start, size_t bytes) const {
  for (auto next = allocations.lower_bound(start);; ++next) {
    uintptr_t end = next == allocations.end() ? reserved.end : next->first;
    if (start <= end && bytes <= end - start)
      return start;
    if (next == allocations.end())
      return 0;
    start = next->first + aligned(next->second.size()) + alignment;
  }
}

uintptr_t CardMemory::allocate(size_t bytes) {
  if (bytes > size - getUsed())
    return 0;
  // What is behind an allocation is nobody's.
  size_t needed = aligned(bytes) + alignment;
  uintptr_t address = findGap(cursor, needed);
  if (!address)
    address = findGap(reserved.begin, needed);
  if (!address || !add(address, bytes))
    return 0;
  cursor = address + needed;
  return address;
}

void *PinnedMemory::allocate(size_t bytes) {
  return bytes <= size - getUsed() ? add(0, bytes) : nullptr;
}

} // namespace simgpu
