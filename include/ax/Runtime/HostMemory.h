//===- HostMemory.h - Memory of this process --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_HOSTMEMORY_H
#define AX_RUNTIME_HOSTMEMORY_H

#include "llvm/Support/Error.h"

#include <cstdint>

namespace ax::rt {

/// Pages that are taken when first touched, zero then; large blocks in huge
/// pages. Freed when destroyed.
class HostMemory {
public:
  HostMemory() = default;
  HostMemory(HostMemory &&other) noexcept;
  HostMemory &operator=(HostMemory &&other) noexcept;
  ~HostMemory();

  /// A RunFailed error when memory is short.
  static llvm::Expected<HostMemory> allocate(int64_t bytes);

  /// Aligned to 64 bytes at least; null where the size is 0.
  void *getData() const { return data; }
  int64_t getSize() const { return size; }

private:
  HostMemory(void *data, int64_t size, uint64_t mappedBytes)
      : data(data), size(size), mappedBytes(mappedBytes) {}
  void *data = nullptr;
  int64_t size = 0;
  uint64_t mappedBytes = 0;
};

} // namespace ax::rt

#endif // AX_RUNTIME_HOSTMEMORY_H
