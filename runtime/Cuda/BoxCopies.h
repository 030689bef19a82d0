//===- BoxCopies.h - A strided box as copies that CUDA can do ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_CUDA_BOXCOPIES_H
#define AX_RUNTIME_CUDA_BOXCOPIES_H

#include "ax/Runtime/StridedCopy.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

#include <cuda.h>

namespace ax::rt::cuda {

/// Calls `copy` for copies of up to three dimensions that are together the
/// box's; stops at the first error, and returns it. Rows of a copy are at most
/// `maxPitch` bytes apart.
llvm::Error
forEachCopy(const StridedBox &box, CUdeviceptr source, CUdeviceptr destination,
            int64_t maxPitch,
            llvm::function_ref<llvm::Error(const CUDA_MEMCPY3D &)> copy);

} // namespace ax::rt::cuda

#endif // AX_RUNTIME_CUDA_BOXCOPIES_H
