//===- Memory.cpp - Addresses of the simulated GPU ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

namespace simgpu {

/// What the driver aligns memory to.
static constexpr size_t alignment = 512;

static size_t aligned(size_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

unsigned char *Allocations::makeBytes(size_t bytes) {
  void *memory = std::aligned_alloc(alignment, aligned(bytes));
  if (memory)
    std::memset(memory, 0xff, aligned(bytes));
  return static_cast<unsigned char *>(memory);
}

void Allocations::add(uintptr_t address, size_t bytes, unsigned char *memory) {
  allocations.emplace(address, Allocation{bytes, {memory, std::free}});
  used += bytes;
}

unsigned char *Allocations::find(uintptr_t address, size_t bytes) const {
  auto next = allocations.upper_bound(address);
  if (next == allocations.begin())
    return nullptr;
  const auto &[begin, allocation] = *std::prev(next);
  size_t offset = address - begin;
  if (offset > allocation.bytes || bytes > allocation.bytes - offset)
    return nullptr;
  return allocation.memory.get() + offset;
}

Range Allocations::startingAt(uintptr_t address) const {
  auto found = allocations.find(address);
  if (found == allocations.end())
    return {};
  return {address, address + found->second.bytes};
}

void Allocations::free(uintptr_t address) {
  auto found = allocations.find(address);
  used -= found->second.bytes;
  allocations.erase(found);
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
    start = next->first + aligned(next->second.bytes) + alignment;
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
  unsigned char *memory = address ? makeBytes(bytes) : nullptr;
  if (!memory)
    return 0;
  add(address, bytes, memory);
  cursor = address + needed;
  return address;
}

void *PinnedMemory::allocate(size_t bytes) {
  unsigned char *memory =
      bytes <= size - getUsed() ? makeBytes(bytes) : nullptr;
  if (memory)
    add(reinterpret_cast<uintptr_t>(memory), bytes, memory);
  return memory;
}

} // namespace simgpu
