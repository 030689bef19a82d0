//===- Run.h - The ranks of this process ------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_COLLECTIVES_RUN_H
#define AX_TOOLS_COLLECTIVES_RUN_H

#include "Options.h"

namespace ax {

/// Finds out what all ranks need for a calibration, if that is what is asked
/// for, before their devices are made. `isFirst`: rank 0 is of this process.
/// Errors of files that cannot be written, and of devices.
llvm::Error prepareCalibration(CollectivesOptions &options, int32_t numRanks,
                               bool isFirst);
/// Measures what is asked for, on one rank, whose thread calls it.
llvm::Error runRank(rt::Communicator &comm, rt::Device &device,
                    const CollectivesOptions &options);

/// Measures as the rank of a process that mpirun has started.
llvm::Error runProcess(CollectivesOptions options);
/// Measures as ranks that are threads.
llvm::Error runThreads(CollectivesOptions options);

} // namespace ax

#endif // AX_TOOLS_COLLECTIVES_RUN_H
