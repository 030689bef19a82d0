//===- CpuMemory.h - Host memory of a CPU rank ------------------*- C++ -*-===//
#ifndef AX_RUNTIME_CPUMEMORY_H
#define AX_RUNTIME_CPUMEMORY_H

#include "ax/Runtime/Device.h"

namespace ax::rt {

/// Zeroed pages that are taken when first touched; large blocks in huge pages.
llvm::Expected<std::unique_ptr<DeviceMemory>> allocateCpuMemory(int64_t bytes);

} // namespace ax::rt

#endif // AX_RUNTIME_CPUMEMORY_H
