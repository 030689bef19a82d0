//===- Communicator.cpp - Ranks that work together ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/Communicator.h"

namespace ax::rt {

Operation::~Operation() = default;
StreamObserver::~StreamObserver() = default;
StreamOperation::~StreamOperation() = default;
CapturedOperations::~CapturedOperations() = default;
Group::~Group() = default;
Communicator::~Communicator() = default;

bool StreamOperation::setObserver(StreamObserver &) { return false; }

llvm::Error Communicator::announceGroups(llvm::ArrayRef<std::vector<int32_t>>) {
  return llvm::Error::success();
}

int64_t Communicator::findStaging(const CollectiveSpecs &, int32_t,
                                  int32_t) const {
  return 0;
}

llvm::Expected<std::unique_ptr<DeviceMemory>>
Communicator::allocate(Device &device, int64_t bytes) {
  return device.allocate(bytes);
}

llvm::Expected<std::unique_ptr<StreamOperation>>
Communicator::prepareOnStream(const CollectiveSpecs &,
                              const std::shared_ptr<Group> &,
                              const std::string &, const Kernel *) {
  return nullptr;
}

llvm::Expected<std::unique_ptr<StreamOperation>>
Communicator::prepareSendOnStream(int32_t, int64_t, int64_t,
                                  const std::string &) {
  return nullptr;
}

llvm::Expected<std::unique_ptr<StreamOperation>>
Communicator::prepareReceiveOnStream(int32_t, int64_t, int64_t,
                                     const std::string &) {
  return nullptr;
}

void Communicator::beginCapture() {}
std::unique_ptr<CapturedOperations> Communicator::endCapture() {
  return nullptr;
}

void Communicator::settle(std::chrono::steady_clock::time_point) {}

llvm::Error Communicator::getLateError() const {
  return llvm::Error::success();
}

} // namespace ax::rt
