//===- RankContext.h - What one rank works on and with ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_RANKCONTEXT_H
#define AX_RUNTIME_RANKCONTEXT_H

#include "ax/Runtime/Communicator.h"
#include "ax/Runtime/Device.h"
#include "ax/Runtime/Program.h"

namespace ax::rt {

struct RankContext {
  RankContext(const Program &program, int32_t rank, Device &device,
              Communicator &communicator, Device *host = nullptr);

  std::vector<int64_t> coordinates(int32_t microBatch) const {
    return program.mesh.coordinates(rank, microBatch);
  }
  /// Allocates memory of the device, of tensors that operations of the
  /// communicator may have.
  llvm::Expected<std::unique_ptr<DeviceMemory>> allocate(int64_t bytes) const {
    return communicator.allocate(device, bytes);
  }

  const Program &program;
  int32_t rank;
  Device &device;
  Communicator &communicator;
  /// Does what the device lacks; null: nobody does.
  Device *host;
  int32_t stageIndex = 0;
  const StageProgram *stage = nullptr;
  /// Position among the ranks of the stage.
  size_t position = 0;
};

} // namespace ax::rt

#endif // AX_RUNTIME_RANKCONTEXT_H
