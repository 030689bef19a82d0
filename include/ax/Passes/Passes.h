//===- Passes.h - The passes of axopt ---------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PASSES_PASSES_H
#define AX_PASSES_PASSES_H

#include "ax/Dialect/Ax.h"
#include "ax/Passes/OptionParsers.h"
#include "ax/Passes/Strategy.h"
#include "ax/Passes/Training.h"
#include "mlir/Pass/Pass.h"

#include <functional>
#include <memory>

namespace ax {

#define GEN_PASS_DECL
#include "ax/Passes/Passes.h.inc"

/// Phases, in their order. Each is to run on a module or a plan. The first is
/// for a model that is to train.
void addCandidatesPhase(mlir::OpPassManager &manager, const Training &training);
void addNormalizePhase(mlir::OpPassManager &manager);
void addRaisePhase(mlir::OpPassManager &manager);
void addStagePhase(mlir::OpPassManager &manager, const Strategy &strategy);
void addTrainPhase(mlir::OpPassManager &manager, const Training &training,
                   const Precision &precision);
/// In its place, for a model that does not train.
void addInferencePhase(mlir::OpPassManager &manager,
                       const Precision &precision);
void addShardPhase(mlir::OpPassManager &manager, const Strategy &strategy,
                   bool strict);
/// What ax-shard does, one after another, on a plan.
void addShardSteps(mlir::OpPassManager &plan, const ShardOptions &options);
/// Returns the bytes of the rank that needs most, of a plan after Shard;
/// failures are diagnostics.
using PredictPeak = std::function<mlir::FailureOr<int64_t>(PlanOp)>;
/// `predict` is asked for `budget:SIZE`; without it there is an estimate that
/// knows no fusion.
void addRecomputePhase(mlir::OpPassManager &manager, const Training &training,
                       PredictPeak predict = nullptr);
void addOptimizePhase(mlir::OpPassManager &manager);
void addPipelinePhase(mlir::OpPassManager &manager, const Strategy &strategy);

std::unique_ptr<mlir::Pass>
createRecomputeForward(RecomputeForwardOptions options, PredictPeak predict);

/// An error of `op` that other flags do not help: the model needs what axopt
/// does not do, and compile gives Unsupported for it.
mlir::InFlightDiagnostic emitUnsupported(mlir::Operation *op);
bool isUnsupported(mlir::Diagnostic &diagnostic);

#define GEN_PASS_REGISTRATION
#include "ax/Passes/Passes.h.inc"

} // namespace ax

#endif // AX_PASSES_PASSES_H
