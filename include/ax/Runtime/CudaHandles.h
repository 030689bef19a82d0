//===- CudaHandles.h - What libraries of CUDA take --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Devices named `cuda` and their streams, as CUDA's own libraries know them.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_CUDAHANDLES_H
#define AX_RUNTIME_CUDAHANDLES_H

#include "ax/Runtime/Device.h"

#include "llvm/ADT/ArrayRef.h"

#include <array>
#include <string>

struct CUstream_st;

namespace ax::rt::cuda {

/// Opens a library of CUDA: folders that AXRUN_CUDA_PATH lists come first. Null
/// where there is none; `why` says what was wrong with each name.
void *openCudaLibrary(llvm::ArrayRef<const char *> names, std::string &why);

/// Makes the context of the device's card that of the calling thread. The
/// device is one named `cuda`.
llvm::Error enterCard(const Device &device);

/// What tells a card from all others, of any host: its UUID.
using CardIdentity = std::array<char, 16>;
llvm::Expected<CardIdentity> getIdentity(const Device &device);

/// Returns the handle of a stream of such a device.
CUstream_st *getHandle(const Stream &stream);

} // namespace ax::rt::cuda

#endif // AX_RUNTIME_CUDAHANDLES_H
