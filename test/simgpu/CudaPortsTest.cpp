//===- CudaPortsTest.cpp - What goes up and down beside computing ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PortsRunner.h"
#include "TestSimgpu.h"

using namespace ax::rt;

namespace {

/// Device cuda, which does only what somebody waits for.
class CudaPortsTest : public ::testing::Test {
protected:
  CudaPortsTest() {
    startSimgpu({{"ORDER", "lazy"}});
    DeviceKind cuda = llvm::cantFail(allBackends().devices.find("cuda"));
    devices = llvm::cantFail(cuda.create({0}, DeviceOptions()));
    devices.front()->attachThread();
    rank.emplace(*devices.front());
  }
  static bool isComputing(PortsRunner &runner) {
    return !llvm::cantFail(runner.streams.compute->isDone());
  }
  static void upload(PortsRunner &runner) {
    llvm::cantFail(runner.streams.upload->synchronize());
  }

  std::vector<std::unique_ptr<Device>> devices;
  std::optional<TestRank> rank;
};

TEST_F(CudaPortsTest, TheNextStepsInputsGoUpWhileOneRuns) {
  PortsRunner runner(*rank, 1, false);
  runner.start(0);
  runner.stage(1);
  upload(runner);
  EXPECT_TRUE(isComputing(runner));
  runner.finish();
}

TEST_F(CudaPortsTest, TheNextMicroBatchsInputsGoUpWhileOneIsComputed) {
  PortsRunner runner(*rank, 3, false);
  runner.open(0, 0);
  runner.compute(0, 0);
  runner.open(0, 1);
  upload(runner);
  EXPECT_TRUE(isComputing(runner));
  runner.compute(0, 1);
  runner.open(0, 2);
  runner.compute(0, 2);
  llvm::cantFail(runner.ports.awaitOutputs());
  runner.finish();
}

// Outputs come down while the next micro-batch is computed.
TEST_F(CudaPortsTest, OutputsComeDownWhileTheNextAreComputed) {
  PortsRunner runner(*rank, 2, false);
  runner.open(0, 0);
  runner.compute(0, 0);
  runner.open(0, 1);
  llvm::cantFail(rank->copy(*runner.streams.compute, runner.addresses[0],
                            runner.addresses[1], portBytes));
  llvm::cantFail(runner.streams.download->synchronize());
  EXPECT_TRUE(isComputing(runner));
  llvm::cantFail(runner.ports.close(runner.turnOf(0, 1), 1));
  llvm::cantFail(runner.ports.awaitOutputs());
  runner.finish();
}

TEST_F(CudaPortsTest, TheHostWaitsForTheEndOnly) {
  const uint64_t steps = 10;
  PortsRunner runner(*rank, 3, false);
  runner.start(0);
  runner.finish();
  uint64_t before = simgpuCounted("cuStreamSynchronize");
  for (uint64_t step = 1; step <= steps; ++step) {
    runner.start(step);
    runner.stage(step + 1);
    runner.finish();
  }
  EXPECT_EQ(simgpuCounted("cuStreamSynchronize") - before, steps);
  EXPECT_EQ(simgpuCounted("cuEventSynchronize"), 0U);
}

} // namespace
