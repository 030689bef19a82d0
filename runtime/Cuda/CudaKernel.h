//===- CudaKernel.h - Kernels of a card -------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_CUDA_CUDAKERNEL_H
#define AX_RUNTIME_CUDA_CUDAKERNEL_H

#include "Card.h"

#include "ax/Runtime/Program.h"

namespace ax::rt::cuda {

/// Code on a card, which all who load equal images share.
class CudaModule;

/// As Device::loadAhead.
std::shared_ptr<const void> loadModules(const SharedCard &card,
                                        llvm::ArrayRef<const Kernel *> kernels);

class CudaKernel : public DeviceKernel {
public:
  /// As Device::loadKernel.
  static llvm::Expected<std::unique_ptr<DeviceKernel>>
  load(const SharedCard &card, const Kernel &kernel);

  /// Puts it on a stream of the card; as Stream::launch.
  llvm::Error launch(const Card &card, CUstream stream,
                     const DeviceAddress *buffers, const int64_t *scalars,
                     DeviceAddress workspace) const;

private:
  CudaKernel(std::shared_ptr<const CudaModule> module, const Kernel &kernel,
             int64_t workspaceBytes);

  std::shared_ptr<const CudaModule> module;
  size_t numBuffers, numScalars;
  unsigned blocks, threadsPerBlock;
};

} // namespace ax::rt::cuda

#endif // AX_RUNTIME_CUDA_CUDAKERNEL_H
