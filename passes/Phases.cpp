//===- Phases.cpp - Passes in their order -----------------------*- C++ -*-===//

#include "ax/Passes/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace ax;

void ax::addNormalizePhase(mlir::OpPassManager &manager) {
  manager.addPass(createNormalize());
  manager.addPass(mlir::createCSEPass());
}

void ax::registerPhases() {
  mlir::PassPipelineRegistration<>("ax-phase-normalize", "Normalize",
                                   addNormalizePhase);
}
