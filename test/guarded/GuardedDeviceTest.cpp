//===- GuardedDeviceTest.cpp - What the guarded device refuses ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "DeviceSuite.h"

#include "ax/Runtime/AllBackends.h"
#include "ax/Runtime/DeviceAccess.h"
#include "ax/Runtime/HostTransfer.h"
#include "ax/Support/Error.h"

#include "gtest/gtest.h"

#include <array>
#include <cmath>

using namespace ax;
using namespace ax::rt;

namespace {

DeviceBackend guarded("Guarded", "guarded");

INSTANTIATE_TEST_SUITE_P(Guarded, DeviceSuite, ::testing::Values(&guarded));

class GuardedDeviceTest : public ::testing::Test {
protected:
  GuardedDeviceTest() {
    BackendOptions options;
    options.device = "guarded";
    devices =
        std::move(llvm::cantFail(allBackends().create(2, options)).devices);
    for (std::unique_ptr<Device> &device : devices)
      transfers.emplace_back(*device, *streams.emplace_back(llvm::cantFail(
                                          device->createStream())));
  }

  std::vector<std::unique_ptr<Device>> devices;
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<HostTransfer> transfers;
};

TEST_F(GuardedDeviceTest, MovesWhatItIsGiven) {
  auto memory = llvm::cantFail(devices[0]->allocate(12));
  std::array<float, 3> values{1, 2, 3}, read{};
  llvm::cantFail(transfers[0].upload(values.data(), memory->getAddress(), 12));
  llvm::cantFail(streams[0]->clear(memory->getAddress() + 4, 4));
  llvm::cantFail(transfers[0].download(memory->getAddress(), read.data(), 12));
  EXPECT_EQ(read, (std::array<float, 3>{1, 0, 3}));
}

TEST_F(GuardedDeviceTest, FreshMemoryIsNaN) {
  auto memory = llvm::cantFail(devices[0]->allocate(8));
  auto zeroed = llvm::cantFail(devices[0]->allocateZeroed(8));
  std::array<float, 2> read{};
  llvm::cantFail(transfers[0].download(memory->getAddress(), read.data(), 8));
  EXPECT_TRUE(std::isnan(read[0]) && std::isnan(read[1]));
  llvm::cantFail(transfers[0].download(zeroed->getAddress(), read.data(), 8));
  EXPECT_EQ(read, (std::array<float, 2>{}));
}

TEST_F(GuardedDeviceTest, RefusesOthersMemoryAndWhatIsFreed) {
  auto memory = llvm::cantFail(devices[0]->allocate(4));
  DeviceAddress address = memory->getAddress();
  float value = 1;
  auto message = [&](HostTransfer &transfer) {
    return llvm::toString(transfer.upload(&value, address, 4));
  };
  EXPECT_EQ(message(transfers[0]), "");
  EXPECT_NE(message(transfers[1]).find("not in the memory of guarded device 1"),
            std::string::npos);
  memory.reset();
  EXPECT_NE(message(transfers[0]).find("not in the memory of guarded device 0"),
            std::string::npos);
}

TEST_F(GuardedDeviceTest, TheHostCannotReadIt) {
  auto memory = llvm::cantFail(devices[0]->allocateZeroed(4));
  auto *pointer = static_cast<volatile float *>(
      DeviceAccess::pointer(memory->getAddress()));
  EXPECT_DEATH(static_cast<void>(*pointer), "");
}

} // namespace
