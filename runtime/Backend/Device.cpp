//===- Device.cpp - What computes: memory, kernels, libraries -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/Device.h"

#include "ax/Support/Error.h"

namespace ax::rt {

DeviceMemory::~DeviceMemory() = default;
PinnedMemory::~PinnedMemory() = default;
DeviceKernel::~DeviceKernel() = default;
LibraryOp::~LibraryOp() = default;
Event::~Event() = default;
Mark::~Mark() = default;
StreamGraph::~StreamGraph() = default;
Stream::~Stream() = default;
HostMapping::~HostMapping() = default;
Device::~Device() = default;

static llvm::Error captureError() {
  return makeError(ExitCode::Unsupported, "the device does not capture");
}
llvm::Error Stream::beginCapture() { return captureError(); }
llvm::Expected<std::unique_ptr<StreamGraph>> Stream::endCapture() {
  return captureError();
}
llvm::Error Stream::recordAtLaunch(Event &) { return captureError(); }

llvm::Expected<std::string> Device::findModel() const { return getName(); }
bool Device::canReach(const Device &) const { return false; }
bool Device::canCapture() const { return false; }
void Device::setSpareMemory(int64_t) {}
std::shared_ptr<const void> Device::loadAhead(llvm::ArrayRef<const Kernel *>) {
  return nullptr;
}
llvm::Expected<int64_t> Device::findWorkspace(const LibraryDesc &) { return 0; }

} // namespace ax::rt
