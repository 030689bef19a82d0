//===- CudaMemory.h - Memory of a card, pinned memory -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_CUDA_CUDAMEMORY_H
#define AX_RUNTIME_CUDA_CUDAMEMORY_H

#include "Card.h"

#include "ax/Runtime/DeviceAccess.h"

namespace ax::rt::cuda {

inline CUdeviceptr toCuda(DeviceAddress address) {
  return reinterpret_cast<CUdeviceptr>(DeviceAccess::pointer(address));
}

/// An error with what is wanted, and what is free.
llvm::Expected<std::unique_ptr<DeviceMemory>>
allocateMemory(const SharedCard &card, int64_t bytes);
llvm::Expected<std::unique_ptr<PinnedMemory>>
allocatePinned(const SharedCard &card, int64_t bytes);

} // namespace ax::rt::cuda

#endif // AX_RUNTIME_CUDA_CUDAMEMORY_H
