//===- HeldParts.h - Which rank has which part ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Worked out from the program, so that every process knows it of all ranks.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_HELDPARTS_H
#define AX_RUNTIME_HELDPARTS_H

#include "Parts.h"

#include "ax/Runtime/Executor.h"

#include <map>
#include <set>

namespace ax::rt {

/// The stage that a rank is of.
const StageProgram &stageOf(const Program &program, int32_t rank);

/// What commands work on, found in one look at all of them.
class UsedValues {
public:
  explicit UsedValues(const Program &program);

  /// Whether a command of the stage works on Program::states[index],
  /// inputs[index] or outputs[index], as `space` says.
  bool isUsed(const StageProgram &stage, Space space, int32_t index) const {
    return byStage[static_cast<size_t>(&stage - first)].count({space, index});
  }

private:
  const StageProgram *first;
  std::vector<std::set<std::pair<Space, int32_t>>> byStage;
};

/// A rank's part of a state.
Part partOf(const Program &program, const State &state, int32_t rank);
/// A rank's parts of an input or an output, by micro-batch.
std::vector<Part> partsOf(const Program &program, const Port &port,
                          int32_t rank);

/// Who hands over an output: of ranks of a stage that have equal parts of it
/// the first does. What is known of some is used for those behind them.
class OutputOwners {
public:
  explicit OutputOwners(const Program &program) : program(program) {}

  /// Whether the rank does so, by micro-batch.
  std::vector<bool> find(int32_t output, int32_t rank);

private:
  struct Known {
    /// By micro-batch, the parts that these ranks have.
    std::vector<std::set<int64_t>> seen;
    /// Of the first ranks of the stage.
    std::vector<std::vector<bool>> owned;
  };
  const Program &program;
  std::map<std::pair<int32_t, const StageProgram *>, Known> known;
};

/// See Executor::getParts.
std::vector<HeldPart> findHeldParts(const Program &program,
                                    const UsedValues &used, int32_t state);

/// See Executor::getNeededRows.
std::vector<RowRange> findNeededRows(const Program &program,
                                     const UsedValues &used, int32_t input,
                                     llvm::ArrayRef<int32_t> ranks);

} // namespace ax::rt

#endif // AX_RUNTIME_HELDPARTS_H
