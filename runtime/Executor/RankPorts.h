//===- RankPorts.h - One rank's parts of inputs and outputs -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_RANKPORTS_H
#define AX_RUNTIME_RANKPORTS_H

#include "ax/Runtime/HostTransfer.h"

#include "llvm/Support/Error.h"

#include <cstdint>
#include <memory>

namespace ax::rt {

/// The rank's part of one input or output in one of its buffers, micro-batch
/// after micro-batch. Transfers are of the rank's device; errors are theirs.
class BoundPort {
public:
  virtual ~BoundPort() = default;
  /// Where the part of a micro-batch is (an input's, with its values), or is to
  /// be written (an output's): aligned as kernels need it, and valid until the
  /// next `open`.
  virtual llvm::Expected<DeviceAddress> open(HostTransfer &transfer,
                                             int32_t microBatch) = 0;
  /// The output's part is written.
  virtual llvm::Error close(HostTransfer &transfer, int32_t microBatch) = 0;
  /// What it keeps in memory of its own.
  virtual int64_t getBytes() const = 0;
};

/// Where a rank's parts come from and go to.
class RankPorts {
public:
  virtual ~RankPorts() = default;
  /// Program::inputs[port], Program::outputs[port]. Called while the rank
  /// prepares, on its thread.
  virtual llvm::Expected<std::unique_ptr<BoundPort>>
  bindInput(int32_t port) = 0;
  virtual llvm::Expected<std::unique_ptr<BoundPort>>
  bindOutput(int32_t port) = 0;
};

} // namespace ax::rt

#endif // AX_RUNTIME_RANKPORTS_H
