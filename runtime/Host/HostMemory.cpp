//===- HostMemory.cpp - Memory of this process ----------------------------===//

#include "ax/Runtime/HostMemory.h"

#include "ax/Support/Error.h"

#include "llvm/Support/MathExtras.h"

#include <sys/mman.h>

namespace ax::rt {

namespace {

constexpr uint64_t hugePage = 2 << 20;

class HostMemory : public DeviceMemory {
public:
  HostMemory(void *address, int64_t size, void *mapping, size_t mappedBytes)
      : DeviceMemory(address, size), mapping(mapping),
        mappedBytes(mappedBytes) {}
  ~HostMemory() override {
    if (mapping)
      munmap(mapping, mappedBytes);
  }

private:
  void *mapping;
  size_t mappedBytes;
};

} // namespace

llvm::Expected<std::unique_ptr<DeviceMemory>>
allocateHostMemory(int64_t bytes) {
  if (bytes == 0)
    return std::make_unique<HostMemory>(nullptr, 0, nullptr, 0);
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
    return std::make_unique<HostMemory>(mapping, bytes, mapping, needed);
  auto start = reinterpret_cast<uintptr_t>(mapping);
  uintptr_t first = llvm::alignTo(start, hugePage), end = first + needed;
  auto *address = reinterpret_cast<void *>(first);
  if (first > start)
    munmap(mapping, first - start);
  if (start + mapped > end)
    munmap(reinterpret_cast<void *>(end), start + mapped - end);
  madvise(address, size / hugePage * hugePage, MADV_HUGEPAGE);
  return std::make_unique<HostMemory>(address, bytes, address, needed);
}

} // namespace ax::rt
