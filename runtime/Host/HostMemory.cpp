//===- HostMemory.cpp - Memory of this process ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/HostMemory.h"

#include "ax/Support/Error.h"

#include "llvm/Support/MathExtras.h"

#include <sys/mman.h>
#include <utility>

namespace ax::rt {

static constexpr uint64_t hugePage = 2 << 20;

HostMemory::HostMemory(HostMemory &&other) noexcept
    : data(std::exchange(other.data, nullptr)),
      size(std::exchange(other.size, 0)),
      mappedBytes(std::exchange(other.mappedBytes, 0)) {}

HostMemory &HostMemory::operator=(HostMemory &&other) noexcept {
  std::swap(data, other.data);
  std::swap(size, other.size);
  std::swap(mappedBytes, other.mappedBytes);
  return *this;
}

HostMemory::~HostMemory() {
  if (data)
    munmap(data, mappedBytes);
}

llvm::Expected<HostMemory> HostMemory::allocate(int64_t bytes) {
  if (bytes == 0)
    return HostMemory();
  auto size = static_cast<uint64_t>(bytes);
  bool huge = size >= hugePage;
  // Room to start at a huge page's boundary; what is left over goes back, so
  // that the last huge page is not one that is hardly used.
  constexpr uint64_t page = 4096;
  uint64_t needed = llvm::alignTo(size, page);
  uint64_t mapped = huge ? needed + hugePage : needed;
  void *mapping = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED)
    return makeErrorf(ExitCode::RunFailed,
                      "out of memory: {0} bytes are not "
                      "available",
                      bytes);
  if (!huge)
    return HostMemory(mapping, bytes, needed);
  auto start = reinterpret_cast<uintptr_t>(mapping);
  uintptr_t first = llvm::alignTo(start, hugePage), end = first + needed;
  auto *address = reinterpret_cast<void *>(first);
  if (first > start)
    munmap(mapping, first - start);
  if (start + mapped > end)
    munmap(reinterpret_cast<void *>(end), start + mapped - end);
  madvise(address, size / hugePage * hugePage, MADV_HUGEPAGE);
  return HostMemory(address, bytes, needed);
}

} // namespace ax::rt
