//===- TestDevice.h - The device that tests run on --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_TESTDEVICE_H
#define AX_TEST_TESTDEVICE_H

#include "ax/Runtime/AllBackends.h"

/// The name of a device; a suite is built once for each (test/guarded).
#ifndef AX_TEST_DEVICE
#define AX_TEST_DEVICE "cpu"
#endif

namespace ax::rt {

inline std::vector<std::unique_ptr<Device>>
createTestDevices(int32_t numRanks, const DeviceOptions &options = {}) {
  DeviceKind device =
      llvm::cantFail(allBackends().devices.find(AX_TEST_DEVICE));
  return llvm::cantFail(device.create(std::vector<int32_t>(numRanks), options));
}

} // namespace ax::rt

#endif // AX_TEST_TESTDEVICE_H
