//===- WriteKernel.cpp - A kernel for a target ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "WriteKernel.h"

#include "CpuWriter.h"
#include "Emitter.h"
#include "GpuWriter.h"

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

KernelFrame writeKernel(FusionOp fusion, KernelNests nests, StringRef symbol,
                        const Target &target, ModuleOp module) {
  bool isEmpty =
      fusion.getBody().front().getTerminator()->getNumOperands() == 0;
  unsigned numScalars = collectScalars(fusion).size();
  if (const GpuTarget *gpu = target.getGpu()) {
    GroupLaunch launch = launchOf(nests);
    if (!isEmpty) {
      GpuWriter writer(fusion, symbol, module, numScalars, nests, launch, *gpu);
      emit(fusion, nests, writer);
    }
    return {launch.sharedBytes > 0 ? 0 : nests.scratchBytes, launch.shape};
  }
  if (!isEmpty) {
    CpuWriter writer(fusion, symbol, module, numScalars,
                     nests.scratchBytes > 0);
    emit(fusion, nests, writer);
  }
  return {nests.scratchBytes, {}};
}

} // namespace ax::codegen
