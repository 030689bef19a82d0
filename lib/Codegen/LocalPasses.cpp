//===- LocalPasses.cpp - The passes behind localisation, in order ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Codegen/LocalPasses.h"

#include "CudnnAttention.h"
#include "EightBitProducts.h"
#include "ax/Codegen/ComposedAttention.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace ax::codegen {

/// What cuDNN 9.19 plans for a card: heads of up to 256 forwards, and backwards
/// on those of 9.0, but 128 on newer ones. There the CPU does a gradient of
/// larger heads of code for 9.0, on which masked gradients may overflow.
static ComposeAttentionOptions attentionFor(const GpuTarget &target) {
  constexpr unsigned hopper = 90;
  constexpr int64_t large = 256;
  ComposeAttentionOptions options;
  options.cudnn = target.hasCudnn;
  if (target.capability >= hopper)
    options.largestHead = large;
  if (target.capability == hopper)
    options.largestGradientHead = large;
  // Those that run on a card of 9.0, too.
  options.liftMasked = target.capability <= hopper;
  return options;
}

SmallVector<std::string> findComposedAttention(PlanOp plan,
                                               const GpuTarget &target) {
  llvm::SmallSetVector<StringRef, 8> names;
  if (target.hasCudnn)
    return {};
  GpuTarget with = target;
  with.hasCudnn = true;
  ComposeAttentionOptions options = attentionFor(with);
  plan.walk([&](Operation *op) {
    if (isLeftToCudnn(op, options))
      names.insert(getNodeName(op));
  });
  return llvm::map_to_vector(names, [](StringRef name) { return name.str(); });
}

std::vector<std::unique_ptr<Pass>> stagePasses(bool separateKernels,
                                               const Target &wanted) {
  std::vector<std::unique_ptr<Pass>> passes;
  const GpuTarget *target = wanted.getGpu();
  bool gpu = target != nullptr, float8 = gpu && hasFloat8Products(*target);
  // As much as stays in the cache next to a processor, or in that of a GPU.
  constexpr int64_t cacheBytes = 1 << 21, gpuCacheBytes = 1 << 25;
  if (float8)
    passes.push_back(createMultiplyFloat8());
  if (gpu || wanted.getCpu()->hasProductsOfIntegers())
    passes.push_back(createMultiplyIntegers({gpu}));
  if (!gpu) {
    passes.push_back(createMultiplyBlocks());
    passes.push_back(createRoundFloat8());
  }
  passes.push_back(
      createComposeProducts({gpu ? gpuCacheBytes : cacheBytes, gpu}));
  passes.push_back(createGroupProducts({gpu}));
  passes.push_back(createComposeVectors({gpu}));
  if (gpu) {
    passes.push_back(createComposeAttention(attentionFor(*target)));
    passes.push_back(createComposeChecks());
    passes.push_back(createComposeTopK());
    passes.push_back(createComposePools({/*channelsLast=*/target->hasCudnn}));
    if (target->hasCudnn)
      passes.push_back(createNarrowConvolutions());
    // Behind a product that is padded there is a slice, and no epilogue.
    passes.push_back(createPadProducts());
  }
  passes.push_back(createNarrowEpilogues({gpu}));
  passes.push_back(createSkipWidening());
  passes.push_back(createJoinEpilogues({gpu}));
  // With what was joined: that is not rounded before.
  if (!gpu)
    passes.push_back(createWidenProducts());
  if (gpu) {
    passes.push_back(createReadRounded());
    passes.push_back(createJoinActivations());
    passes.push_back(createJoinLinears());
  }
  passes.push_back(createChannelsLast({/*cudnn=*/gpu && target->hasCudnn}));
  passes.push_back(createWriteTransposed());
  passes.push_back(createOrderProducts({float8}));
  passes.push_back(createReshapeOnes());
  passes.push_back(createMergeEqual());
  passes.push_back(createPickElements());
  if (!gpu)
    passes.push_back(createTabulateBytes());
  // Behind that: what is widened twice is not kept from one to the other.
  passes.push_back(createWidenFactors({gpu, float8}));
  if (gpu) {
    passes.push_back(createJoinAccumulation());
    passes.push_back(createSplitScans());
    passes.push_back(createSplitReductions());
    passes.push_back(createComputeWhereRead());
  }
  passes.push_back(createFuse({separateKernels, gpu}));
  passes.push_back(createComputeOnce());
  passes.push_back(createRoundAtUpdate());
  if (gpu && !separateKernels)
    passes.push_back(createJoinKernels());
  passes.push_back(createMarkInPlace());
  passes.push_back(createReadParts());
  passes.push_back(createPlaceBuffers());
  return passes;
}

void addStagePass(OpPassManager &plans, std::unique_ptr<Pass> pass) {
  if (pass->getOpName() == PlanOp::getOperationName())
    plans.addPass(std::move(pass));
  else
    plans.nest<LocalProgramOp>().nest<LocalStageOp>().addPass(std::move(pass));
}

#define GEN_PASS_REGISTRATION
#include "ax/Codegen/LocalPasses.h.inc"

void registerLocalPasses() {
  registerAxLocalPasses();
  PassPipelineRegistration<>(
      "axl-lower", "All steps from a plan to what becomes commands",
      [](OpPassManager &manager) {
        OpPassManager &plans = manager.nest<PlanOp>();
        plans.addPass(createLocalize());
        for (std::unique_ptr<Pass> &pass : stagePasses(false, Target::native()))
          addStagePass(plans, std::move(pass));
      });
}

} // namespace ax::codegen
