//===- Report.h - What a plan makes every rank hold and do ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_PLAN_REPORT_H
#define AX_LIB_PLAN_REPORT_H

#include "ax/Plan/Layers.h"
#include "ax/Plan/Plan.h"

namespace ax::plan {

struct Collective {
  mlir::Operation *op = nullptr;
  sharding::StepKind kind = sharding::StepKind::AllReduce;
  sharding::SubAxes axes;
  /// The layer whose result (or whose operand) it is, of its first tensor.
  std::string node;
  std::string because;
  /// The payload of a rank, each time; and how often that is in a step.
  int64_t bytes = 0, times = 1;
  /// How many tensors are exchanged together.
  int64_t tensors = 1;
  /// FLOPs of contractions between start and wait, and the largest of them.
  double hiddenFlops = 0;
  std::string behind;
};

struct StageReport {
  int64_t on = 0;
  /// Its lists, in the program's order.
  std::vector<StageOp> lists;
  cost::StageCost cost;
  /// The memory that ranks allocate, where it is known, instead of the estimate
  /// in `cost`.
  std::optional<cost::RankMemory> memory;
  int64_t peakBytes() const {
    return memory ? memory->total() : cost.peakBytes();
  }
  std::vector<Layer> layers;
  std::vector<Collective> collectives;
  /// Weights read by the stage: as a whole, and a rank's part.
  int64_t wholeWeightBytes = 0, rankWeightBytes = 0;
  int64_t numOps = 0;
  /// How many states the program that prepares them stores, and their bytes.
  int64_t numPrepared = 0, preparedBytes = 0;
  /// Forward operations that the backward pass does again, and the FLOPs of
  /// them, of one rank and step.
  int64_t numRecomputed = 0;
  double recomputedFlops = 0;
  /// The time of one step: computing and collectives, and sending to later
  /// stages.
  double seconds = 0, sendSeconds = 0;
};

struct TransferReport {
  TransferOp op;
  /// The bytes that a rank sends for a micro-batch.
  int64_t bytes = 0;
};

struct ProgramReport {
  ProgramOp op;
  std::vector<StageReport> stages;
  std::vector<TransferReport> transfers;
  /// Predicted time of one step, all micro-batches.
  double seconds = 0;
  /// Part of that in which, on average, a stage does not compute.
  double bubble = 0;
};

struct Report {
  PlanOp plan;
  sharding::Mesh mesh;
  /// That all times are predicted for.
  cost::Machine machine;
  std::vector<ProgramReport> programs;
};

/// Describes a verified plan.
Report makeReport(mlir::ModuleOp module,
                  const cost::Predictions &predictions = cost::Predictions());

/// `{row, col}`.
std::string axesText(const sharding::SubAxes &axes, const sharding::Mesh &mesh);
/// `k over {col}, rows over {data}`.
std::string splitsText(const Layer &layer, const sharding::Mesh &mesh);

} // namespace ax::plan

#endif // AX_LIB_PLAN_REPORT_H
