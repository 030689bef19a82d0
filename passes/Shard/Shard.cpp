//===- Shard.cpp - The steps from pins to collectives ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Passes/Passes.h"

#include "mlir/Pass/PassManager.h"

namespace ax {
#define GEN_PASS_DEF_SHARD
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;

void ax::addShardSteps(OpPassManager &plan, const ShardOptions &options) {
  plan.addPass(createDecomposeSplit());
  plan.addPass(createRecipePins({options.sequenceParallel, options.strict}));
  UserPinsOptions user;
  user.pins = options.pins;
  plan.addPass(createUserPins(user));
  plan.addPass(createUpdatePins({options.zero}));
  plan.addPass(createPropagate({options.strict}));
  plan.addPass(createInsertReshards({options.zero}));
}

namespace {
struct Shard : ax::impl::ShardBase<Shard> {
  using ShardBase::ShardBase;

  void runOnOperation() final {
    ShardOptions options;
    options.sequenceParallel = sequenceParallel;
    options.zero = zero;
    options.pins.assign(pins.begin(), pins.end());
    options.strict = strict;
    OpPassManager steps(PlanOp::getOperationName());
    addShardSteps(steps, options);
    if (failed(runPipeline(steps, getOperation())))
      return signalPassFailure();
    // Each step has said what it preserves, and was verified.
    markAllAnalysesPreserved();
  }
};
} // namespace
