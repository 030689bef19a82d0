//===- ChooseNests.cpp - Which loops kernels will have --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ForEachStage.h"
#include "ax/Codegen/Kernel.h"
#include "ax/Codegen/LocalPasses.h"

namespace ax::codegen {
#define GEN_PASS_DEF_CHOOSENESTS
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

namespace {

struct ChooseNestsPass : codegen::impl::ChooseNestsBase<ChooseNestsPass> {
  using ChooseNestsBase::ChooseNestsBase;
  void runOnOperation() override {
    Target target = gpu ? Target(GpuTarget()) : Target::native();
    forEachStage(getOperation(), [&](LocalStageOp stage) {
      // A kernel that cannot be written is an error when it is to be.
      for (auto fusion : stage.getBlock().getOps<FusionOp>())
        llvm::consumeError(showNests(fusion, target));
    });
  }
};

} // namespace
