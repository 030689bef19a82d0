//===- ThreadCheckpoints.h - Checkpoints read by threads --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_THREADCHECKPOINTS_H
#define AX_TEST_THREADCHECKPOINTS_H

#include "ThreadWorlds.h"

#include "ax/Runtime/Agreement.h"
#include "ax/Runtime/Checkpoint.h"

namespace ax::rt {

/// How process `process` of a job reads, which has the rank of that number.
inline CheckpointReading readingOf(const Program &program,
                                   const ThreadWorlds &job, size_t process) {
  std::shared_ptr<World> world = job.worlds[process];
  CheckpointReading reading;
  reading.needs = findNeededElements(program, {static_cast<int32_t>(process)});
  reading.agree = [world](llvm::Error error) {
    return agree(*world, "checkpoint", std::move(error));
  };
  return reading;
}

} // namespace ax::rt

#endif // AX_TEST_THREADCHECKPOINTS_H
