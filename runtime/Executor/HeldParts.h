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

namespace ax::rt {

/// The stage that a rank is of.
const StageProgram &stageOf(const Program &program, int32_t rank);

/// Whether a command of the stage works on Program::states[index],
/// inputs[index] or outputs[index], as `space` says.
bool isUsed(const StageProgram &stage, Space space, int32_t index);

/// A rank's part of a state.
Part partOf(const Program &program, const State &state, int32_t rank);
/// A rank's parts of an input or an output, by micro-batch.
std::vector<Part> partsOf(const Program &program, const Port &port,
                          int32_t rank);
/// Whether the rank hands over its part of an output, by micro-batch: of ranks
/// of a stage that have equal ones the first does.
std::vector<bool> findOwned(const Program &program, const Port &port,
                            int32_t rank);

/// See Executor::getParts.
std::vector<HeldPart> findHeldParts(const Program &program, int32_t state);

/// See Executor::getNeededRows.
std::vector<RowRange> findNeededRows(const Program &program, int32_t input,
                                     llvm::ArrayRef<int32_t> ranks);

} // namespace ax::rt

#endif // AX_RUNTIME_HELDPARTS_H
