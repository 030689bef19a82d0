//===- HostOp.h - What a device lacks, done by the host ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_HOSTOP_H
#define AX_RUNTIME_HOSTOP_H

#include "ax/Runtime/Device.h"

namespace ax::rt {

/// A library operation on the memory of one device that another one does, which
/// works on the host's: between a download and an upload.
class HostOp {
public:
  /// As Device::prepare of `device`, whose stream is `stream`; `host` does it.
  static llvm::Expected<std::unique_ptr<HostOp>>
  create(const LibraryDesc &desc, const ConstantOperand &constant,
         Device &device, Stream &stream, Device &host);

  bool readsConstant() const { return op->readsConstant(); }
  /// Does the operation once, and returns when the host has: what the stream
  /// gets next finds the results.
  llvm::Error execute(Stream &stream, const DeviceAddress *arguments);

private:
  struct Argument {
    TensorDesc tensor;
    std::unique_ptr<PinnedMemory> copy;
    bool isRead = true, isWritten = false;
    /// What lies between a result's elements, another result's may be, is
    /// taken from the device when these are done; else null.
    std::unique_ptr<PinnedMemory> around;
  };
  llvm::Error upload(Stream &stream, const Argument &argument,
                     DeviceAddress to);

  std::vector<Argument> arguments;
  std::unique_ptr<LibraryOp> op;
  std::unique_ptr<Stream> hostStream;
  std::unique_ptr<DeviceMemory> workspace;
  /// The copies, as the host's device finds them.
  std::vector<DeviceAddress> addresses;
};

} // namespace ax::rt

#endif // AX_RUNTIME_HOSTOP_H
