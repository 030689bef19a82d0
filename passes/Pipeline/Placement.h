//===- Placement.h - Which list does which operation ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PASSES_PIPELINE_PLACEMENT_H
#define AX_PASSES_PIPELINE_PLACEMENT_H

#include "ax/Cost/Schedule.h"
#include "ax/Dialect/Actions.h"
#include "ax/Dialect/StageAndAction.h"

#include "llvm/ADT/DenseSet.h"

namespace ax {

/// Where operations are done, from their attributes and from each other: in
/// which action (forward, backward, gradients of weights, update) of which
/// stage.
class Placement {
public:
  /// Without a schedule, gradients of weights are backward actions, which is as
  /// far as all schedules agree; `coordinateOf` may not be asked then.
  Placement(ProgramOp program, const sharding::Mesh &mesh,
            const cost::PipelineSchedule *schedule = nullptr);

  /// Places everything; fails, and says so, at what needs more than one
  /// micro-batch at a time.
  mlir::LogicalResult run();

  /// Whether an operation depends on no input: it is computed wherever it is
  /// used, which is cheaper than to send it.
  bool isEverywhere(mlir::Operation *op) const {
    return everywhere.contains(op);
  }
  bool isEverywhere(mlir::Value value) const {
    return value.getDefiningOp() && isEverywhere(value.getDefiningOp());
  }
  /// Whether an operation of the update costs nothing, so that each list that
  /// reads its result does it: what is kept between lists is its operand.
  bool isFree(mlir::Operation *op) const {
    return isReducedWhereKept(op, mesh);
  }
  /// Returns in which action an operation is done. With one stage, forward is
  /// the backward pass too; with one micro-batch besides, everything.
  Action actionOf(mlir::Operation *op) const { return actions.lookup(op); }
  /// Returns the stage of an operation; nothing for an update that all stages
  /// which need it do.
  std::optional<int64_t> stageOf(mlir::Operation *op) const;

  int64_t numStages() const { return stages; }
  int64_t coordinateOf(int64_t stage) const {
    return schedule->coordinateOf(stage, ranks);
  }
  int64_t partOf(int64_t stage) const { return stage / ranks; }
  int64_t numCoordinates() const { return ranks; }

private:
  Action ownAction(mlir::Operation *op) const;
  mlir::LogicalResult checkTime(mlir::Operation *op) const;
  mlir::LogicalResult checkSums(mlir::Operation *op) const;
  void findWeightGradients();
  void storeWhereMade();
  llvm::DenseSet<mlir::Attribute> findCarried();

  ProgramOp program;
  const sharding::Mesh &mesh;
  const cost::PipelineSchedule *schedule;
  int64_t ranks, stages;
  llvm::DenseSet<mlir::Operation *> everywhere;
  llvm::DenseMap<mlir::Operation *, Action> actions;
  llvm::DenseMap<mlir::Operation *, int64_t> stageOfOp;
};

} // namespace ax

#endif // AX_PASSES_PIPELINE_PLACEMENT_H
