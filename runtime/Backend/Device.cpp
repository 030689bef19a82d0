//===- Device.cpp - What computes: memory, kernels, libraries -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/Device.h"

namespace ax::rt {

DeviceMemory::~DeviceMemory() = default;
PinnedMemory::~PinnedMemory() = default;
DeviceKernel::~DeviceKernel() = default;
LibraryOp::~LibraryOp() = default;
Event::~Event() = default;
Mark::~Mark() = default;
Stream::~Stream() = default;
HostMapping::~HostMapping() = default;
Device::~Device() = default;

bool Device::canReach(const Device &) const { return false; }
void Device::setSpareMemory(int64_t) {}

} // namespace ax::rt
