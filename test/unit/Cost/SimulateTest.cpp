//===- SimulateTest.cpp - Simulation of schedules -------------------------===//
#include "ax/Cost/Simulate.h"

#include <gtest/gtest.h>

namespace ax::cost {

TEST(Simulate, StagesOverlap) {
  Simulation result =
      simulate({{1, {0, 1, 2, 3}}, {1, {0, 1, 2, 3}}}, {{0, 1, 2, 0}});
  EXPECT_TRUE(result.stuck.empty());
  EXPECT_DOUBLE_EQ(result.seconds, 5);
  EXPECT_DOUBLE_EQ(result.busy[0], 4);
}

TEST(Simulate, OneSlotHoldsTheSenderBack) {
  // The second value waits until the slow stage has read the first.
  Simulation two = simulate({{1, {0, 1, 2}}, {10, {0, 1, 2}}}, {{0, 1, 2, 0}});
  Simulation one = simulate({{1, {0, 1, 2}}, {10, {0, 1, 2}}}, {{0, 1, 1, 0}});
  EXPECT_DOUBLE_EQ(two.seconds, 31);
  EXPECT_DOUBLE_EQ(one.seconds, 31);
  EXPECT_TRUE(one.stuck.empty());
}

TEST(Simulate, OtherOrderNeverEnds) {
  Simulation result = simulate({{1, {0, 1}}, {1, {1, 0}}}, {{0, 1, 1, 0}});
  ASSERT_EQ(result.stuck.size(), 2u);
  EXPECT_EQ(result.stuck[0],
            "stage 0 at F1 waits for a free one of the 1 slots of stage 1");
  EXPECT_EQ(result.stuck[1],
            "stage 1 at F1 waits for micro-batch 1 of stage 0");
}

TEST(Simulate, CycleNeverEnds) {
  Simulation result =
      simulate({{1, {0}}, {1, {0}}}, {{0, 1, 1, 0}, {1, 0, 1, 0}});
  EXPECT_EQ(result.stuck.size(), 2u);
}

} // namespace ax::cost
