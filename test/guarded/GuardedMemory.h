//===- GuardedMemory.h - Memory that only its device reaches ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_GUARDEDMEMORY_H
#define AX_TEST_GUARDEDMEMORY_H

#include "ax/Runtime/Device.h"
#include "ax/Runtime/HostMemory.h"

#include <map>
#include <mutex>

namespace ax::rt {

/// The allocations of one memory space. An address is that of a page which
/// nobody can touch; what it stands for lies somewhere else. Thread-safe.
class GuardedSpace : public std::enable_shared_from_this<GuardedSpace> {
public:
  explicit GuardedSpace(int32_t number) : number(number) {}
  int32_t getNumber() const { return number; }

  /// Full of NaN, or of zeros.
  llvm::Expected<std::unique_ptr<DeviceMemory>> allocate(int64_t bytes,
                                                         bool isZeroed);
  /// The memory of the process behind an address, or none behind none. An
  /// Internal error when it is in no allocation that lives.
  llvm::Expected<void *> find(DeviceAddress address) const;
  void free(DeviceAddress address);

private:
  struct Allocation {
    char *memory = nullptr;
    int64_t bytes = 0;
  };
  int32_t number;
  mutable std::mutex mutex;
  /// By the address of the page.
  std::map<uintptr_t, Allocation> allocations;
};

/// The space of a rank of this process, whatever devices it has one after
/// another: they share what it keeps.
std::shared_ptr<GuardedSpace> guardedSpace(int32_t rank);

} // namespace ax::rt

#endif // AX_TEST_GUARDEDMEMORY_H
