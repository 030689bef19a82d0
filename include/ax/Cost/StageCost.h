//===- StageCost.h - Memory and time of a pipeline stage --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_COST_STAGECOST_H
#define AX_COST_STAGECOST_H

#include "ax/Cost/OpCost.h"

namespace ax::cost {

/// What a rank of a stage allocates for a program, as codegen plans it.
struct RankMemory {
  /// States from files; other states that change, in training and without;
  /// constants.
  int64_t weights = 0, optimizer = 0, carried = 0, constants = 0;
  /// What the backward pass leaves for the update; other values on the way,
  /// with those that are kept for it.
  int64_t gradients = 0, activations = 0;
  /// Slots of transfers, and parts of the program's inputs and outputs.
  int64_t slots = 0, ports = 0;

  int64_t total() const {
    return weights + optimizer + carried + constants + gradients + activations +
           slots + ports;
  }
};

/// What code generation knows of a stage's list: what all of the stage's
/// allocate, and how long the list takes once.
struct ListPrediction {
  RankMemory memory;
  double seconds = 0;
};
/// By lists (`ax.stage`), where that is known.
using Predictions = llvm::DenseMap<mlir::Operation *, ListPrediction>;

/// What a pipeline stage costs one rank.
struct StageCost {
  /// How long each of the stage's lists takes once.
  std::vector<double> seconds;
  /// States and constants that the stage reads.
  int64_t stateBytes = 0;
  /// Values made on the way by the list that needs most, placed by when they
  /// live; without fusion, which only lowers it.
  int64_t arenaBytes = 0;
  /// Its slots of transfers and of what its lists leave for each other, and its
  /// parts of the program's inputs and outputs.
  int64_t slotBytes = 0, portBytes = 0;

  int64_t peakBytes() const {
    return stateBytes + arenaBytes + slotBytes + portBytes;
  }
};

/// `lists`: all stages on one coordinate.
StageCost stageCost(llvm::ArrayRef<StageOp> lists, const sharding::Mesh &mesh,
                    const Machine &machine);

/// Returns the bytes that one rank needs for a program that is not cut into
/// stages yet: states, constants, and values made on the way, without fusion.
int64_t programBytes(ProgramOp program, const sharding::Mesh &mesh);

/// Whether ranks exchange something: not for sums over time.
bool isSent(CollectiveOpInterface op, const sharding::Mesh &mesh);
/// Payload per rank of a collective, one micro-batch.
int64_t payloadBytes(CollectiveOpInterface op, const sharding::Mesh &mesh);
/// What it takes, alone; 0 if nothing is sent.
double collectiveSeconds(CollectiveOpInterface op, const sharding::Mesh &mesh,
                         const Machine &machine);

} // namespace ax::cost

#endif // AX_COST_STAGECOST_H
