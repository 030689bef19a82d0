//===- Placement.h - Which list does which operation ------------*- C++ -*-===//
#ifndef AX_PASSES_PIPELINE_PLACEMENT_H
#define AX_PASSES_PIPELINE_PLACEMENT_H

#include "../StageAndAction.h"

#include "llvm/ADT/DenseSet.h"

namespace ax {

/// Where operations are done, from their attributes and from each other.
class Placement {
public:
  Placement(ProgramOp program, const sharding::Mesh &mesh, bool splitBackward);

  /// Says what needs more than one micro-batch at a time.
  mlir::LogicalResult run();

  /// Depends on no input: computed wherever it is used.
  bool isEverywhere(mlir::Operation *op) const {
    return everywhere.contains(op);
  }
  bool isEverywhere(mlir::Value value) const {
    return value.getDefiningOp() && isEverywhere(value.getDefiningOp());
  }
  /// F, B, W or U. With one stage, F is the backward pass too; with one
  /// micro-batch besides, everything.
  char letterOf(mlir::Operation *op) const { return letters.lookup(op); }
  /// Of an update: nothing where all stages that need it do it.
  std::optional<int64_t> stageOf(mlir::Operation *op) const;

  int64_t numStages() const { return stages; }
  /// Stages are dealt to coordinates on `pipe` in turn.
  int64_t coordinateOf(int64_t stage) const { return stage % ranks; }
  int64_t partOf(int64_t stage) const { return stage / ranks; }
  int64_t numCoordinates() const { return ranks; }

private:
  char ownLetter(mlir::Operation *op) const;
  mlir::LogicalResult checkTime(mlir::Operation *op) const;
  void findWeightGradients();

  ProgramOp program;
  const sharding::Mesh &mesh;
  bool splitBackward;
  int64_t ranks, stages;
  llvm::DenseSet<mlir::Operation *> everywhere;
  llvm::DenseMap<mlir::Operation *, char> letters;
  llvm::DenseMap<mlir::Operation *, int64_t> stageOfOp;
};

} // namespace ax

#endif // AX_PASSES_PIPELINE_PLACEMENT_H
