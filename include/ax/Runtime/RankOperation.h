//===- RankOperation.h - Communication on device memory ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_RANKOPERATION_H
#define AX_RUNTIME_RANKOPERATION_H

#include "ax/Runtime/Communicator.h"
#include "ax/Runtime/Device.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace ax::rt {

/// An operation of a communicator, which works on memory of the host, on that
/// of a rank's device, where the communicator has none that works on streams:
/// in place where the two are the same, else on copies here between a download
/// and an upload. Errors are those of Operation, and the stream's.
class RankOperation : public StreamOperation {
public:
  /// The bytes of one tensor; a send has no destination, a receive no source.
  struct Sizes {
    int64_t source = 0, destination = 0;
  };
  static llvm::Expected<std::unique_ptr<RankOperation>>
  create(std::unique_ptr<Operation> operation, Device &device,
         llvm::ArrayRef<Sizes> tensors);

  /// Returns what a communicator has prepared for streams; or, where that is
  /// nothing, what it prepares for the host.
  static llvm::Expected<std::unique_ptr<StreamOperation>> inPlaceOf(
      llvm::Expected<std::unique_ptr<StreamOperation>> onStream,
      llvm::function_ref<llvm::Expected<std::unique_ptr<Operation>>()> onHost,
      Device &device, llvm::ArrayRef<Sizes> tensors);

  /// Waits for what the stream holds.
  llvm::Error start(Stream &stream,
                    llvm::ArrayRef<DeviceAddress> addresses) override;
  /// Returns when the others have done their part.
  llvm::Error finish(Stream &stream) override;

private:
  RankOperation(std::unique_ptr<Operation> operation,
                const HostMapping *mapping)
      : operation(std::move(operation)), mapping(mapping) {}

  struct Tensor {
    int64_t bytes = 0;
    /// Null where there is a mapping.
    std::unique_ptr<PinnedMemory> copy;
    /// Where the tensor is in the run that was started.
    DeviceAddress address;
  };

  std::unique_ptr<Operation> operation;
  /// The device's; null where there are copies.
  const HostMapping *mapping;
  std::vector<Tensor> sources, destinations;
  /// Addresses of this run, in the host's memory.
  std::vector<const void *> from;
  std::vector<void *> to;
};

} // namespace ax::rt

#endif // AX_RUNTIME_RANKOPERATION_H
