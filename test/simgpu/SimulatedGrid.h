//===- SimulatedGrid.h - Kernels for GPUs, on a processor -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_SIMGPU_SIMULATEDGRID_H
#define AX_TEST_SIMGPU_SIMULATEDGRID_H

#include "ax/Runtime/Program.h"

#include "llvm/ADT/ArrayRef.h"

#include <optional>

namespace ax {

/// In which order threads run that need not wait for each other.
struct GridOrder {
  /// Another order for each; without one, the last comes first.
  std::optional<uint64_t> seed = {};
  /// The number, from 0 on, of a barrier at which no thread of a block waits.
  int64_t droppedBarrier = -1;
};

/// How a kernel ended.
struct GridEnd {
  /// The address with which it did, where that is of no memory.
  std::optional<uintptr_t> fault = {};
  /// Says that threads wait for others that never come; empty: none do.
  std::string stuck = {};
};

/// A kernel for a target that is simulated, loaded. Copies share the code.
class SimulatedGrid {
public:
  /// Of an image of format rt::kernelFormat::ptx, which may be gone then. A
  /// BadPlan error where what is behind its text is damaged.
  static llvm::Expected<SimulatedGrid> load(llvm::ArrayRef<uint8_t> image,
                                            llvm::StringRef entry);
  /// Runs all threads of all blocks, one at a time, those of a block in turns
  /// if they can meet. The memory that a block shares is NaN when it begins.
  /// `parameters`: an address of each. Only one thread of a process does it at
  /// a time.
  GridEnd run(const rt::LaunchShape &shape, const void *const *parameters,
              GridOrder order = {}) const;
  /// Where its code begins: another kernel's is elsewhere.
  const void *getCode() const { return code.get(); }

private:
  SimulatedGrid(std::shared_ptr<const void> code, bool meets, bool shares)
      : code(std::move(code)), meets(meets), shares(shares) {}
  std::shared_ptr<const void> code;
  /// Its threads wait for each other; a block has memory of its own.
  bool meets, shares;
};

/// Loads a kernel and runs it. `buffers`: an address of each argument;
/// `scratch`: of that of all groups, null if there is none. An Internal error
/// for one that does not end well.
llvm::Error runGrid(const rt::Kernel &kernel, const rt::LaunchShape &shape,
                    llvm::ArrayRef<void *> buffers,
                    llvm::ArrayRef<int64_t> scalars, void *scratch,
                    GridOrder order = {});

} // namespace ax

#endif // AX_TEST_SIMGPU_SIMULATEDGRID_H
