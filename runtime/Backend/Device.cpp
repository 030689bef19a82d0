//===- Device.cpp - What computes: memory, kernels, libraries -------------===//

#include "ax/Runtime/Device.h"

namespace ax::rt {

DeviceMemory::~DeviceMemory() = default;
DeviceKernel::~DeviceKernel() = default;
LibraryOp::~LibraryOp() = default;
Event::~Event() = default;
Stream::~Stream() = default;
Device::~Device() = default;

} // namespace ax::rt
