//===- Nvtx.h - Ranges for NVIDIA's profilers -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_CUDA_NVTX_H
#define AX_RUNTIME_CUDA_NVTX_H

namespace ax::rt::cuda {

/// Lets a profiler that has started the process (NVTX_INJECTION64_PATH) know of
/// ranges; does nothing where there is none, or NVTX's header was missing.
void listenForProfiler();

} // namespace ax::rt::cuda

#endif // AX_RUNTIME_CUDA_NVTX_H
