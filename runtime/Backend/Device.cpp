//===- Device.cpp - What computes: memory, kernels, libraries -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/Device.h"

namespace ax::rt {

DeviceMemory::~DeviceMemory() = default;
DeviceKernel::~DeviceKernel() = default;
LibraryOp::~LibraryOp() = default;
Event::~Event() = default;
Stream::~Stream() = default;
HostMapping::~HostMapping() = default;
Device::~Device() = default;

static StridedBox makeRun(int64_t bytes) {
  StridedBox box(bytes);
  box.finish();
  return box;
}

llvm::Error Stream::upload(const void *host, DeviceAddress device,
                           int64_t bytes) {
  return bytes ? upload(makeRun(bytes), host, device) : llvm::Error::success();
}

llvm::Error Stream::download(DeviceAddress device, void *host, int64_t bytes) {
  return bytes ? download(makeRun(bytes), device, host)
               : llvm::Error::success();
}

} // namespace ax::rt
