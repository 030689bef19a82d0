//===- MemoryNeeds.h - What a rank allocates --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_MEMORYNEEDS_H
#define AX_RUNTIME_MEMORYNEEDS_H

#include "ax/Runtime/Program.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace ax::rt {

/// Bytes of a device's memory, by what they are for. What libraries pack only
/// they know, and what they use for a while, too (Device::findWorkspace), but
/// for attention, whose gradient takes much.
struct MemoryNeeds {
  /// States from files, or prepared, and what is made of them once, or when
  /// they are updated; other states that change, in training and without; all
  /// other ones.
  int64_t weights = 0, optimizer = 0, carried = 0, constants = 0;
  /// What lists make on their way, and what they keep for others.
  int64_t values = 0, kept = 0;
  /// Slots of transfers, and parts of the program's inputs and outputs, of one
  /// micro-batch.
  int64_t slots = 0, ports = 0;
  /// What kernels, and attention of 16-bit floats and its gradient, use for a
  /// while; on a device at least what its libraries say.
  int64_t scratch = 0;
  /// What exchanges copy by, where a communicator says so.
  int64_t staging = 0;

  int64_t total() const;
  MemoryNeeds &operator+=(const MemoryNeeds &other);
  /// `weights 1.5 MiB, values 300 B`: what is not 0.
  std::string toText() const;
};

/// A device whose memory is not the host's has each input and output so many
/// times: what is computed, and what goes up or comes down meanwhile.
inline constexpr int64_t numPortSlots = 2;

/// Returns what a rank of the stage needs; of states those for whose numbers
/// `counts` returns true, which is asked once for each. `nondeterministic`: as
/// in DeviceOptions.
MemoryNeeds findNeeds(
    const Program &program, const StageProgram &stage,
    llvm::function_ref<bool(int32_t)> counts = [](int32_t) { return true; },
    bool nondeterministic = false);

} // namespace ax::rt

#endif // AX_RUNTIME_MEMORYNEEDS_H
