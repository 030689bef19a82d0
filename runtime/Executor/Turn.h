//===- Turn.h - Which slot an action's values have --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_TURN_H
#define AX_RUNTIME_TURN_H

#include <cstddef>
#include <cstdint>

namespace ax::rt {

/// Which of all executions of a command list one is: they use slots in turns,
/// through all steps. So a step's micro-batches have the slots that they have
/// in every step, where as many slots as there are divide them evenly; and else
/// in every second step, of two slots. A step of one micro-batch could be like
/// all others only in one slot: then what comes before it in a pipeline would
/// wait until it is done, instead of going on with the next request.
struct Turn {
  /// The step's number, which counts from 0.
  uint64_t step = 0;
  /// How often a step does the list, and how often this one has before.
  int32_t perStep = 1, place = 0;

  /// Whether the list was never done before.
  bool isFirst() const { return step == 0 && place == 0; }

  size_t slotOf(size_t slots) const {
    return (step * static_cast<uint64_t>(perStep) +
            static_cast<uint64_t>(place)) %
           slots;
  }
};

} // namespace ax::rt

#endif // AX_RUNTIME_TURN_H
