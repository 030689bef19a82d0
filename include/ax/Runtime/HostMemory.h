//===- HostMemory.h - Memory of this process --------------------*- C++ -*-===//
#ifndef AX_RUNTIME_HOSTMEMORY_H
#define AX_RUNTIME_HOSTMEMORY_H

#include "ax/Runtime/Device.h"

namespace ax::rt {

/// Zeroed pages that are taken when first touched; large blocks in huge pages.
llvm::Expected<std::unique_ptr<DeviceMemory>> allocateHostMemory(int64_t bytes);

} // namespace ax::rt

#endif // AX_RUNTIME_HOSTMEMORY_H
