//===- Phases.cpp - Passes in their order -----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Cost/OpCost.h"
#include "ax/Passes/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace ax;

/// Gives the options of both passes that choose: they ask the same question,
/// with the same flags.
template <typename OptionsTy>
static OptionsTy optionsOfChoice(const Training &training) {
  OptionsTy options;
  options.trainable.assign(training.trainable.begin(),
                           training.trainable.end());
  options.frozen.assign(training.frozen.begin(), training.frozen.end());
  return options;
}

void ax::addCandidatesPhase(mlir::OpPassManager &manager,
                            const Training &training) {
  manager.nest<PlanOp>().addPass(
      createMarkCandidates(optionsOfChoice<MarkCandidatesOptions>(training)));
}

void ax::addNormalizePhase(mlir::OpPassManager &manager) {
  manager.addPass(createNormalize());
  manager.addPass(mlir::createCSEPass());
}

void ax::addRaisePhase(mlir::OpPassManager &manager) {
  manager.addPass(createRaiseDropout());
  manager.addPass(createRaiseActivation());
  manager.addPass(createRaiseNorm());
  manager.addPass(createRaiseLinear());
  // Linears keep dimensions apart that the exporter had merged: what was
  // between them is normal again only now.
  addNormalizePhase(manager);
  manager.addPass(createRaiseAttention());
  addNormalizePhase(manager);
}

void ax::addStagePhase(mlir::OpPassManager &manager, const Strategy &strategy) {
  mlir::OpPassManager &plan = manager.nest<PlanOp>();
  SetMeshOptions mesh;
  mesh.tensor = strategy.tensor;
  mesh.data = strategy.data;
  mesh.context = strategy.context;
  mesh.pipe = strategy.pipe;
  mesh.micro = strategy.micro;
  mesh.order.assign(strategy.order.begin(), strategy.order.end());
  plan.addPass(createSetMesh(mesh));
  plan.addPass(createDealWeights());
  AssignStagesOptions stages;
  stages.cut.assign(strategy.cuts.begin(), strategy.cuts.end());
  stages.virtualStages = strategy.parts();
  plan.addPass(createAssignStages(stages));
}

void ax::addInferencePhase(mlir::OpPassManager &manager,
                           const Precision &precision) {
  manager.nest<PlanOp>().addPass(createRoundActivations({precision}));
  manager.nest<PlanOp>().addPass(createSetPrecision({precision}));
  manager.addPass(createTransposeFloat8());
  manager.addPass(mlir::createCSEPass());
}

void ax::addTrainPhase(mlir::OpPassManager &manager, const Training &training,
                       const Precision &precision) {
  mlir::OpPassManager &plan = manager.nest<PlanOp>();
  plan.addPass(createStraightThrough());
  plan.addPass(
      createSelectTrainable(optionsOfChoice<SelectTrainableOptions>(training)));
  plan.addPass(createAddMasterWeights());
  plan.addPass(createAddDropout({training.dropout}));
  // Gradients in f16 overflow, and vanish.
  bool isScaled = precision.type == Precision::FP16;
  plan.addPass(createAddLoss({*training.loss, isScaled}));
  plan.addPass(createRoundActivations({precision}));
  DifferentiateOptions differentiate;
  differentiate.trainable.assign(training.trainable.begin(),
                                 training.trainable.end());
  plan.addPass(createDifferentiate(differentiate));
  addNormalizePhase(manager);
  manager.nest<PlanOp>().addPass(createSetFloat8({precision}));
  manager.nest<PlanOp>().addPass(createSetPrecision({precision}));
  AddOptimizerOptions optimizer;
  optimizer.optimizer = training.optimizer;
  optimizer.learningRateSchedule = training.learningRateSchedule;
  optimizer.groups.assign(training.groups.begin(), training.groups.end());
  optimizer.clipNorm = training.clipNorm;
  optimizer.frozenRows.assign(training.frozenRows.begin(),
                              training.frozenRows.end());
  manager.nest<PlanOp>().addPass(createAddOptimizer(optimizer));
  manager.addPass(mlir::createCSEPass());
}

void ax::addShardPhase(mlir::OpPassManager &manager, const Strategy &strategy,
                       bool strict) {
  ShardOptions options;
  options.sequenceParallel = strategy.sequenceParallel;
  options.zero = strategy.zero;
  options.strict = strict;
  options.pins.assign(strategy.shard.begin(), strategy.shard.end());
  mlir::OpPassManager &plan = manager.nest<PlanOp>();
  plan.addPass(createShard(options));
  plan.addPass(createCarryStates());
  plan.addPass(createSumPartials());
  plan.addPass(createExchangeNarrow());
}

void ax::addRecomputePhase(mlir::OpPassManager &manager,
                           const Training &training, PredictPeak predict) {
  manager.nest<PlanOp>().addPass(
      createRecomputeForward({training.recompute}, std::move(predict)));
}

void ax::addOptimizePhase(mlir::OpPassManager &manager) {
  manager.addPass(createSinkProducts());
}

void ax::addPipelinePhase(mlir::OpPassManager &manager,
                          const Strategy &strategy) {
  mlir::OpPassManager &plan = manager.nest<PlanOp>();
  // Only now is known what a rank computes and what it waits for.
  if (strategy.pipe > 1 && strategy.cuts.empty())
    plan.addPass(createAssignStages());
  plan.addPass(createOutlineStages({strategy.schedule}));
  plan.addPass(createPrepare());
  plan.addPass(createShareCollectives());
  plan.addPass(createOverlap());
  plan.addPass(createSchedule({strategy.schedule}));
}
