//===- SimulateTest.cpp - Simulation of schedules -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Cost/Simulate.h"

#include <gtest/gtest.h>

namespace ax::cost {

/// A stage of one list.
static SimulatedStage stage(double seconds, std::vector<int64_t> order) {
  SimulatedStage result{{seconds}, {}};
  for (int64_t microBatch : order)
    result.order.push_back({microBatch, 0, "F" + std::to_string(microBatch)});
  return result;
}

TEST(Simulate, StagesOverlap) {
  Simulation result = simulate({stage(1, {0, 1, 2, 3}), stage(1, {0, 1, 2, 3})},
                               {{0, 1, 2, 0}});
  EXPECT_TRUE(result.stuck.empty());
  EXPECT_DOUBLE_EQ(result.seconds, 5);
  EXPECT_DOUBLE_EQ(result.busy[0], 4);
}

TEST(Simulate, OneSlotHoldsTheSenderBack) {
  // The second value waits until the slow stage has read the first.
  Simulation two =
      simulate({stage(1, {0, 1, 2}), stage(10, {0, 1, 2})}, {{0, 1, 2, 0}});
  Simulation one =
      simulate({stage(1, {0, 1, 2}), stage(10, {0, 1, 2})}, {{0, 1, 1, 0}});
  EXPECT_DOUBLE_EQ(two.seconds, 31);
  EXPECT_DOUBLE_EQ(one.seconds, 31);
  EXPECT_TRUE(one.stuck.empty());
}

TEST(Simulate, OtherOrderNeverEnds) {
  Simulation result =
      simulate({stage(1, {0, 1}), stage(1, {1, 0})}, {{0, 1, 1, 0}});
  ASSERT_EQ(result.stuck.size(), 2u);
  EXPECT_EQ(result.stuck[0],
            "stage 0 at F1 waits for a free one of the 1 slots of stage 1");
  EXPECT_EQ(result.stuck[1],
            "stage 1 at F1 waits for micro-batch 1 of stage 0");
}

/// What comes back is taken by another list.
TEST(Simulate, ListsOfAStage) {
  SimulatedStage first{
      {1, 2}, {{0, 0, "F0"}, {1, 0, "F1"}, {0, 1, "B0"}, {1, 1, "B1"}}};
  SimulatedStage second{
      {1, 2}, {{0, 0, "F0"}, {0, 1, "B0"}, {1, 0, "F1"}, {1, 1, "B1"}}};
  std::vector<SimulatedTransfer> transfers = {{0, 1, 2, 0, 0, 0},
                                              {1, 0, 2, 0, 1, 1}};
  Simulation result = simulate({first, second}, transfers);
  EXPECT_TRUE(result.stuck.empty());
  EXPECT_DOUBLE_EQ(result.seconds, 9);
  std::swap(first.order[1], first.order[2]);
  EXPECT_TRUE(simulate({first, second}, transfers).stuck.empty());
  std::swap(first.order[0], first.order[1]);
  result = simulate({first, second}, transfers);
  ASSERT_EQ(result.stuck.size(), 2u);
  EXPECT_EQ(result.stuck[0],
            "stage 0 at B0 waits for micro-batch 0 of stage 1");
}

TEST(Simulate, CycleNeverEnds) {
  Simulation result =
      simulate({stage(1, {0}), stage(1, {0})}, {{0, 1, 1, 0}, {1, 0, 1, 0}});
  EXPECT_EQ(result.stuck.size(), 2u);
}

} // namespace ax::cost
