//===- WriteKernel.cpp - A kernel for a target ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "WriteKernel.h"

#include "CpuWriter.h"
#include "Emitter.h"
#include "GpuWriter.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace ax::codegen {

Dealing dealingFor(const Target &target) {
  return target.getGpu() ? Dealing::Elements : Dealing::Pieces;
}

static void emit(FusionOp fusion, KernelNests &nests, KernelWriter &writer) {
  Emitter emitter(fusion, nests, writer);
  emitter.run();
  assert(!emitter.wantsRefining() &&
         emitter.getScratchBytes() == nests.scratchBytes &&
         "the nests were chosen for this kernel");
}

void writeKernel(FusionOp fusion, KernelNests nests, StringRef symbol,
                 const Target &target, ModuleOp module) {
  if (fusion.getBody().front().getTerminator()->getNumOperands() == 0)
    return;
  unsigned numScalars = collectScalars(fusion).size();
  if (target.getGpu()) {
    GpuWriter writer(fusion, symbol, module, numScalars, nests);
    emit(fusion, nests, writer);
  } else {
    CpuWriter writer(fusion, symbol, module, numScalars,
                     nests.scratchBytes > 0);
    emit(fusion, nests, writer);
  }
}

rt::LaunchShape launchShape(const Target &target, int64_t iterations,
                            int64_t scratchBytes) {
  if (!target.getGpu())
    return {};
  constexpr int64_t warp = 32, mostThreads = 256, mostBlocks = 4096;
  constexpr int64_t mostScratch = 64 << 20;
  int64_t threads = std::max<int64_t>(iterations, 1);
  if (scratchBytes > 0)
    threads =
        std::min(threads, std::max<int64_t>(mostScratch / scratchBytes, 1));
  // Of few iterations, each multiprocessor is to have some.
  int64_t block = threads < mostThreads * warp ? warp : mostThreads;
  rt::LaunchShape shape;
  shape.threadsPerBlock = std::min(threads, block);
  shape.blocks = std::min<int64_t>(
      llvm::divideCeil(threads, shape.threadsPerBlock), mostBlocks);
  return shape;
}

} // namespace ax::codegen
