//===- GuardedMemory.cpp - Memory that only its device reaches ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "GuardedMemory.h"

#include "ax/Runtime/DeviceAccess.h"
#include "ax/Support/Error.h"

#include <cstring>
#include <sys/mman.h>

namespace ax::rt {

namespace {

class GuardedMemory : public DeviceMemory {
public:
  GuardedMemory(DeviceAddress address, HostMemory memory,
                std::shared_ptr<GuardedSpace> space)
      : DeviceMemory(address, memory.getSize()), memory(std::move(memory)),
        space(std::move(space)) {}
  ~GuardedMemory() override {
    if (!getAddress())
      return;
    space->free(getAddress());
    munmap(DeviceAccess::pointer(getAddress()), static_cast<size_t>(getSize()));
  }

private:
  HostMemory memory;
  std::shared_ptr<GuardedSpace> space;
};

uintptr_t numberOf(DeviceAddress address) {
  return reinterpret_cast<uintptr_t>(DeviceAccess::pointer(address));
}

} // namespace

llvm::Expected<std::unique_ptr<DeviceMemory>>
GuardedSpace::allocate(int64_t bytes, bool isZeroed) {
  llvm::Expected<HostMemory> memory = HostMemory::allocate(bytes);
  if (!memory)
    return memory.takeError();
  if (bytes == 0)
    return std::make_unique<GuardedMemory>(DeviceAddress(), std::move(*memory),
                                           shared_from_this());
  auto size = static_cast<size_t>(bytes);
  void *page = mmap(nullptr, size, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (page == MAP_FAILED)
    return makeErrorf(ExitCode::RunFailed, "no addresses for {0} bytes", bytes);
  // All bits set: NaN of any type, -1 as an index.
  if (!isZeroed)
    std::memset(memory->getData(), 0xff, size);
  DeviceAddress address = DeviceAccess::address(page);
  {
    std::lock_guard<std::mutex> lock(mutex);
    allocations[numberOf(address)] = {static_cast<char *>(memory->getData()),
                                      bytes};
  }
  return std::make_unique<GuardedMemory>(address, std::move(*memory),
                                         shared_from_this());
}

llvm::Expected<void *> GuardedSpace::find(DeviceAddress address) const {
  if (!address)
    return nullptr;
  std::lock_guard<std::mutex> lock(mutex);
  auto next = allocations.upper_bound(numberOf(address));
  if (next != allocations.begin()) {
    const auto &[begin, allocation] = *std::prev(next);
    auto offset = static_cast<int64_t>(numberOf(address) - begin);
    // What is empty may lie at the end.
    if (offset <= allocation.bytes)
      return allocation.memory + offset;
  }
  return makeErrorf(ExitCode::Internal,
                    "address {0} is not in the memory of guarded device {1}",
                    DeviceAccess::pointer(address), number);
}

void GuardedSpace::free(DeviceAddress address) {
  std::lock_guard<std::mutex> lock(mutex);
  allocations.erase(numberOf(address));
}

std::shared_ptr<GuardedSpace> guardedSpace(int32_t rank) {
  static std::mutex mutex;
  static std::map<int32_t, std::weak_ptr<GuardedSpace>> spaces;
  std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<GuardedSpace> space = spaces[rank].lock();
  if (!space) {
    space = std::make_shared<GuardedSpace>(rank);
    spaces[rank] = space;
  }
  return space;
}

} // namespace ax::rt
