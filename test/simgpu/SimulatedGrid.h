//===- SimulatedGrid.h - Kernels for GPUs, on a processor -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_SIMGPU_SIMULATEDGRID_H
#define AX_TEST_SIMGPU_SIMULATEDGRID_H

#include "ax/Runtime/Program.h"

#include "llvm/ADT/ArrayRef.h"

#include <random>

namespace ax {

/// A kernel for a target that is simulated, loaded. Copies share the code.
class SimulatedGrid {
public:
  /// Of an image of format rt::kernelFormat::ptx, which may be gone then. A
  /// BadPlan error where what is behind its text is damaged.
  static llvm::Expected<SimulatedGrid> load(llvm::ArrayRef<uint8_t> image,
                                            llvm::StringRef entry);
  /// Runs all threads of all blocks, one after another: in an order that is
  /// drawn from `random`; without it, the last one first. `parameters`: an
  /// address of each. Only one thread of a process does it at a time. Returns
  /// the address with which it ended, where that is of no memory.
  std::optional<uintptr_t> run(const rt::LaunchShape &shape,
                               const void *const *parameters,
                               std::mt19937_64 *random = nullptr) const;
  /// Where its code begins: another kernel's is elsewhere.
  const void *getCode() const { return code.get(); }

private:
  explicit SimulatedGrid(std::shared_ptr<const void> code)
      : code(std::move(code)) {}
  std::shared_ptr<const void> code;
};

/// Loads a kernel and runs it. `buffers`: an address of each argument;
/// `scratch`: of that of all threads, null if there is none.
llvm::Error runGrid(const rt::Kernel &kernel, const rt::LaunchShape &shape,
                    llvm::ArrayRef<void *> buffers,
                    llvm::ArrayRef<int64_t> scalars, void *scratch);

} // namespace ax

#endif // AX_TEST_SIMGPU_SIMULATEDGRID_H
