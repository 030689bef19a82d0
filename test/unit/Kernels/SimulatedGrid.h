//===- SimulatedGrid.h - Kernels for GPUs, on a processor -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_UNIT_KERNELS_SIMULATEDGRID_H
#define AX_TEST_UNIT_KERNELS_SIMULATEDGRID_H

#include "ax/Runtime/Program.h"

#include "llvm/ADT/ArrayRef.h"

namespace ax {

/// Runs all threads of all blocks of a kernel for a target that is simulated,
/// one after another, the last one first. `buffers`: an address of each
/// argument; `scratch`: of that of all threads, null if there is none.
llvm::Error runGrid(const rt::Kernel &kernel, const rt::LaunchShape &shape,
                    llvm::ArrayRef<void *> buffers,
                    llvm::ArrayRef<int64_t> scalars, void *scratch);

} // namespace ax

#endif // AX_TEST_UNIT_KERNELS_SIMULATEDGRID_H
