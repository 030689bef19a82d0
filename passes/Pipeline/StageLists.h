//===- StageLists.h - A program cut into lists ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PASSES_PIPELINE_STAGELISTS_H
#define AX_PASSES_PIPELINE_STAGELISTS_H

#include "Placement.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <map>
#include <set>

namespace ax {

/// What becomes one `ax.stage`.
struct StageList {
  ActionKind kind;
  int64_t on = 0;
  /// The stage of the model; 0 for an update, which is of all that its
  /// coordinate has.
  int64_t stage = 0;
  /// The operations, in the order of the program.
  std::vector<mlir::Operation *> ops;
  /// Values from outside, and which list gives each; null: a program input.
  llvm::MapVector<mlir::Value, StageList *> takes;
  llvm::SetVector<mlir::Value> gives;
  /// What became of it.
  StageOp made;
  llvm::DenseMap<mlir::Value, mlir::Value> results;
};

/// States by name, with a coordinate that reads them.
using HeldStates = std::set<std::pair<std::string, int64_t>>;

/// Calls fn(state) for what `op` reads: itself, or by way of what is done
/// everywhere.
void forEachStateRead(mlir::Operation *op, const Placement &placement,
                      llvm::function_ref<void(llvm::StringRef)> fn);
/// Adds what the program's operations read that stages own.
void collectHeld(ProgramOp program, const Placement &placement,
                 HeldStates &held);

/// A program's lists, and the ways of values between them.
///
/// Values of the forward pass go from stage to stage; what the backward pass of
/// a stage needs of them is kept there. Gradients go back from stage to stage.
/// The update is done by every stage for the states that it holds. Where one
/// needs what another has made there are several lists, with transfers between
/// them: gradients of a weight on two stages, the global norm.
class StageLists {
public:
  StageLists(ProgramOp program, const Placement &placement);

  /// `held`: what coordinates read, of all programs of the plan.
  mlir::LogicalResult collect(const HeldStates &held);

  /// Returns the lists in an order in which each comes after those that it
  /// takes from.
  std::vector<StageList *> inOrder();
  /// The list that gives an output of the program.
  StageList &giverOf(mlir::Value output) { return *givers[output]; }

private:
  friend class UpdatePlacer;

  StageList &list(Action action, int64_t part, int64_t on);
  /// Returns the list of a stage's forward or backward operations.
  StageList &ofStage(Action action, int64_t stage) {
    StageList &found =
        list(action, placement.partOf(stage), placement.coordinateOf(stage));
    found.stage = stage;
    return found;
  }
  StageList &homeOf(mlir::Operation *op) {
    return ofStage(placement.actionOf(op), *placement.stageOf(op));
  }
  /// `value` will be there in the list of stage `stage`.
  mlir::LogicalResult bring(mlir::Value value, Action action, int64_t stage);
  mlir::LogicalResult placeOutputs();
  static void take(StageList &list, mlir::Value value, StageList *from) {
    if (list.takes.try_emplace(value, from).second && from)
      from->gives.insert(value);
  }

  ProgramOp program;
  const Placement &placement;
  /// The lists by action, part and coordinate.
  std::map<std::tuple<Action, int64_t, int64_t>, StageList> lists;
  llvm::DenseMap<mlir::Value, StageList *> givers;
};

/// Places what is done once a step. A coordinate that reads a state, in which
/// program ever, has its new value, too.
void placeUpdates(StageLists &lists, ProgramOp program,
                  const Placement &placement, const HeldStates &held);

} // namespace ax

#endif // AX_PASSES_PIPELINE_STAGELISTS_H
