//===- GpuWriter.h - Kernels as what one thread does ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_CODEGEN_KERNELS_GPUWRITER_H
#define AX_CODEGEN_KERNELS_GPUWRITER_H

#include "Nests.h"
#include "ScalarWriter.h"

namespace ax::codegen {

/// A kernel of which every thread of a grid does each so-manieth iteration,
/// from its own number on: neighbours do neighbours at the same time, and any
/// number of blocks and threads does all. Parameters are those that
/// kernelFormat::ptx says (ax/Runtime/Program.h).
class GpuWriter final : public ScalarWriter {
public:
  /// Into `module`, which is empty.
  GpuWriter(FusionOp fusion, llvm::StringRef symbol, mlir::ModuleOp module,
            unsigned numScalars, const KernelNests &nests);

  void iterations(
      int64_t tiledSize,
      llvm::function_ref<void(Value, std::pair<Value, Value>)> body) final;

private:
  Value wide(Value number);

  /// The number of this thread in the grid, and of all threads.
  Value thread, numThreads;
  int64_t numIterations;
};

} // namespace ax::codegen

#endif // AX_CODEGEN_KERNELS_GPUWRITER_H
