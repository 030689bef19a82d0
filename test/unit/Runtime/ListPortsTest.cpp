//===- ListPortsTest.cpp - Inputs and outputs on every device -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PortsRunner.h"

namespace ax::rt {

namespace {

// Of every second step the first inputs are staged while the last one runs.
TEST_P(DeviceSuite, PortsMoveWhatStepsTake) {
  for (bool isDirect : {false, true})
    for (int32_t microBatches : {1, 2, 3, 4, 5}) {
      PortsRunner runner(*rank, microBatches, isDirect);
      runner.inputs.fill(0);
      for (uint32_t step = 0; step < 6; ++step) {
        TestParts wanted = runner.inputs;
        runner.start(step);
        // On the host's memory inputs are used where they are.
        bool isStaged = step % 2 && !device.getHostMapping();
        if (isStaged) {
          runner.inputs.fill(100 * (step + 1));
          runner.stage(step + 1);
        }
        runner.finish();
        EXPECT_TRUE(runner.outputs == wanted) << microBatches << " " << step;
        if (!isStaged)
          runner.inputs.fill(100 * (step + 1));
      }
    }
}

} // namespace

} // namespace ax::rt
