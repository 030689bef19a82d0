//===- PrintKernels.cpp - The code of kernels for GPUs --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ForEachStage.h"
#include "ax/Codegen/Kernel.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Support/Error.h"

namespace ax::codegen {
#define GEN_PASS_DEF_PRINTKERNELS
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

static void print(const rt::Kernel &kernel, llvm::raw_ostream &os) {
  os << "// " << kernel.iterations << " iterations: " << kernel.launch.blocks
     << " blocks of " << kernel.launch.threadsPerBlock << " threads, "
     << kernel.launch.groupThreads << " and " << kernel.scratchBytes
     << " bytes of scratch for each\n"
     << reinterpret_cast<const char *>(kernel.image.data());
}

namespace {

struct PrintKernelsPass : codegen::impl::PrintKernelsBase<PrintKernelsPass> {
  using PrintKernelsBase::PrintKernelsBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    addLoweringDialects(registry);
  }

  llvm::Error printAll() {
    std::optional<GpuTarget> gpu = GpuTarget::find(target.getValue());
    if (!gpu)
      return makeErrorf(ExitCode::Usage, "'{0}' is no GPU that is known",
                        target.getValue());
    KernelOptions options;
    options.target = *gpu;
    auto compiler = KernelCompiler::create(options);
    if (!compiler)
      return compiler.takeError();
    SmallVector<FusionOp> fusions;
    forEachStage(getOperation(), [&](LocalStageOp stage) {
      llvm::append_range(fusions, stage.getBlock().getOps<FusionOp>());
    });
    auto kernels = (*compiler)->compileAll(fusions);
    if (!kernels)
      return kernels.takeError();
    for (const CompiledKernel &kernel : *kernels)
      print(*kernel.image, llvm::outs());
    return llvm::Error::success();
  }

  void runOnOperation() override {
    if (llvm::Error error = printAll()) {
      getOperation()->emitError(describeError(std::move(error)).message);
      signalPassFailure();
    }
  }
};

} // namespace
