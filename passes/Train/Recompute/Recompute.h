//===- Recompute.h - Forward operations done again --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PASSES_TRAIN_RECOMPUTE_RECOMPUTE_H
#define AX_PASSES_TRAIN_RECOMPUTE_RECOMPUTE_H

#include "ax/Cost/OpCost.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace ax {

/// A program's forward pass, as its backward pass sees it.
class Recompute {
public:
  using Ops = llvm::DenseSet<mlir::Operation *>;

  explicit Recompute(ProgramOp program);

  /// Operations of the forward pass that can be done again, in their order.
  llvm::ArrayRef<mlir::Operation *> getForward() const { return forward; }
  bool hasBackward() const { return !backward.empty(); }
  /// Runs of the forward pass between places where little crosses. What stands
  /// after the last one goes on with the backward pass at once.
  size_t numSegments() const { return cuts.size(); }
  /// Returns the segment of an operation; numSegments() after the last.
  size_t segmentOf(mlir::Operation *op) const;
  /// Whether a value is computed from states and constants alone.
  bool isOfWeights(mlir::Value value) const { return weights.contains(value); }
  /// Whether its result crosses from one segment to the next.
  bool crosses(mlir::Operation *op) const { return crossing.contains(op); }

  /// Whether an operation is never done again: it has an effect, or reduces
  /// between ranks, or moves between them what it does not enlarge, or its
  /// result jumps: done again of numbers that are rounded in another way, that
  /// would not be what the forward pass went by.
  static bool mustBeKept(mlir::Operation *op);
  /// Whether an operation is done again in about the time that reading a few
  /// such results takes.
  bool isCheap(mlir::Operation *op) const;

  /// What doing `again` again comes to: bytes that are kept from forward to
  /// backward all the same, and the time that the copies take.
  struct Tradeoff {
    int64_t keptBytes = 0;
    double seconds = 0;
  };
  Tradeoff tradeoffOf(const Ops &again) const;

  /// Keeps a result instead of a larger or equal operand that only it needs.
  void keepLater(Ops &again) const;

  /// Copies what the backward pass needs of `again`. Done once.
  void apply(const Ops &again);

private:
  bool isForward(mlir::Operation *op) const { return position.contains(op); }
  void cut();
  /// Copies that `again` leads to, and the values that are kept, each with
  /// those who read it.
  struct Needs {
    llvm::SetVector<mlir::Operation *> copies;
    llvm::MapVector<mlir::Value, llvm::SetVector<mlir::Operation *>> kept;
  };
  Needs needs(const Ops &again) const;
  int64_t bytes(mlir::Value value) const {
    return cost::localBytes(tensorType(value), mesh);
  }

  sharding::Mesh mesh;
  cost::Machine machine;
  llvm::SmallVector<mlir::Operation *> forward, backward;
  llvm::DenseMap<mlir::Operation *, size_t> position;
  /// Values that are computed from states and constants alone.
  llvm::DenseSet<mlir::Value> weights;
  /// Ends of segments, as positions.
  llvm::SmallVector<size_t> cuts;
  Ops crossing;
};

} // namespace ax

#endif // AX_PASSES_TRAIN_RECOMPUTE_RECOMPUTE_H
