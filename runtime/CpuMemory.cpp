//===- CpuMemory.cpp - Host memory of a CPU rank --------------------------===//

#include "CpuMemory.h"

#include "ax/Support/Error.h"

#include "llvm/Support/MathExtras.h"

#include <sys/mman.h>

namespace ax::rt {

namespace {

constexpr uint64_t hugePage = 2 << 20;

class CpuMemory : public DeviceMemory {
public:
  CpuMemory(void *address, int64_t size, void *mapping, size_t mappedBytes)
      : DeviceMemory(address, size), mapping(mapping),
        mappedBytes(mappedBytes) {}
  ~CpuMemory() override {
    if (mapping)
      munmap(mapping, mappedBytes);
  }

private:
  void *mapping;
  size_t mappedBytes;
};

} // namespace

llvm::Expected<std::unique_ptr<DeviceMemory>> allocateCpuMemory(int64_t bytes) {
  if (bytes == 0)
    return std::make_unique<CpuMemory>(nullptr, 0, nullptr, 0);
  auto size = static_cast<uint64_t>(bytes);
  bool huge = size >= hugePage;
  // Room to start at a huge page's boundary.
  uint64_t mapped = huge ? llvm::alignTo(size, hugePage) + hugePage : size;
  void *mapping = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED)
    return makeErrorf(ExitCode::RunFailed,
                      "out of memory: {0} bytes are not "
                      "available",
                      bytes);
  void *address = mapping;
  if (huge) {
    address = reinterpret_cast<void *>(
        llvm::alignTo(reinterpret_cast<uintptr_t>(mapping), hugePage));
    madvise(address, llvm::alignTo(size, hugePage), MADV_HUGEPAGE);
  }
  return std::make_unique<CpuMemory>(address, bytes, mapping, mapped);
}

} // namespace ax::rt
