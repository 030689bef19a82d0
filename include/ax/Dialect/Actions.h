//===- Actions.h - Entries of schedules -------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the ranks of one pipeline coordinate do is cut into lists of operations,
// one `ax.stage` each: forward, backward, update. A schedule says in which
// order they are done, and for which micro-batch.
//
//===----------------------------------------------------------------------===//
#ifndef AX_DIALECT_ACTIONS_H
#define AX_DIALECT_ACTIONS_H

#include "ax/Dialect/Ax.h"
#include "ax/Dialect/ScheduledAction.h"

namespace ax {

/// Attributes of `ax.stage`: which list it is (F without them), and for how
/// many micro-batches at a time the values are kept that other stages on the
/// same ranks take from it. On operations before the Pipeline phase `kAction`
/// says to which kind of list they belong.
inline constexpr llvm::StringLiteral kAction = "ax.action", kPart = "ax.part",
                                     kSlots = "ax.slots";

/// The attribute that says an operation's pipeline stage before the Pipeline
/// phase.
inline constexpr llvm::StringLiteral kStage = "stage";

/// Returns the action of an operation that is in no stage yet: what `kAction`
/// says, else forward.
Action markedAction(mlir::Operation *op);
void markAction(mlir::Operation *op, Action action);
inline bool haveSameStageAndAction(mlir::Operation *a, mlir::Operation *b) {
  return a->getDiscardableAttr(kStage) == b->getDiscardableAttr(kStage) &&
         a->getDiscardableAttr(kAction) == b->getDiscardableAttr(kAction);
}

/// Returns what the stage is for; nothing when its attributes make no sense.
std::optional<ActionKind> actionOf(StageOp stage);
void setAction(StageOp stage, ActionKind kind);

/// Sub-axes of `axes` that are in time.
sharding::SubAxes inTime(const sharding::SubAxes &axes,
                         const sharding::Mesh &mesh);
/// A sum, or a maximum, that every slice of the axes in time takes part in.
bool isReducedOverTime(const sharding::Layout &layout,
                       const sharding::Mesh &mesh);
/// It is such a one, and a list that runs once a step takes it: what the slices
/// have is added up, or compared, where it is kept.
bool isAccumulated(mlir::OpResult result, const sharding::Mesh &mesh);
/// An all-reduce over slices in time alone. Where it is done once a step, it
/// has nothing to do: its operand was added up, or compared, where it is kept.
bool isReducedWhereKept(mlir::Operation *op, const sharding::Mesh &mesh);
/// The sum in whose place a list's result is kept for other lists; null where
/// it has a place of its own. That is one over micro-batches, added up where it
/// is kept, which the list adds up over ranks, and nobody else reads: a
/// gradient, of which the norm is taken before it is used.
mlir::OpResult keptInPlaceOf(mlir::OpResult result, const sharding::Mesh &mesh);
/// Keeps what other lists take of a stage for `slots` micro-batches.
void setSlots(StageOp stage, const sharding::Mesh &mesh, int64_t slots);
/// Returns the number of micro-batches of which a stage's result is kept at the
/// same time: one when it is the same in all, or is added up.
int64_t keptSlots(mlir::OpResult result, const sharding::Mesh &mesh);

} // namespace ax

#endif // AX_DIALECT_ACTIONS_H
