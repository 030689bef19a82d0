//===- SimulateTest.cpp - Simulation of schedules -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Cost/Simulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

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
  EXPECT_EQ(result.deadlock, "");
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
  EXPECT_EQ(one.deadlock, "");
}

TEST(Simulate, OtherOrderNeverEnds) {
  Simulation result =
      simulate({stage(1, {0, 1}), stage(1, {1, 0})}, {{0, 1, 1, 0, 0, 0, "x"}});
  ASSERT_EQ(result.stuck.size(), 2u);
  EXPECT_EQ(result.stuck[1],
            "stage 1 at F1 waits for micro-batch 1 of stage 0");
  EXPECT_EQ(result.deadlock,
            "stage 0, before F1, waits to send 'x' of micro-batch 0 to stage "
            "1; stage 1, before F1, waits to receive 'x' of micro-batch 1 from "
            "stage 0");
}

/// What comes back is taken by another list.
TEST(Simulate, ListsOfAStage) {
  SimulatedStage first{
      {1, 2}, {{0, 0, "F0"}, {1, 0, "F1"}, {0, 1, "B0"}, {1, 1, "B1"}}};
  SimulatedStage second{
      {1, 2}, {{0, 0, "F0"}, {0, 1, "B0"}, {1, 0, "F1"}, {1, 1, "B1"}}};
  std::vector<SimulatedTransfer> transfers = {{0, 1, 2, 0, 0, 0, "x"},
                                              {1, 0, 2, 0, 1, 1, "g"}};
  Simulation result = simulate({first, second}, transfers);
  EXPECT_EQ(result.deadlock, "");
  EXPECT_DOUBLE_EQ(result.seconds, 9);
  std::swap(first.order[1], first.order[2]);
  EXPECT_EQ(simulate({first, second}, transfers).deadlock, "");
  std::swap(first.order[0], first.order[1]);
  first.ranks = "ranks 0, 1";
  second.ranks = "ranks 2, 3";
  result = simulate({first, second}, transfers);
  EXPECT_EQ(result.deadlock,
            "stage 0 (ranks 0, 1), before B0, waits to receive 'g' of "
            "micro-batch 0 from stage 1 (ranks 2, 3); stage 1 (ranks 2, 3), "
            "before F0, waits to receive 'x' of micro-batch 0 from stage 0 "
            "(ranks 0, 1)");
}

TEST(Simulate, CycleNeverEnds) {
  Simulation result =
      simulate({stage(1, {0}), stage(1, {0})},
               {{0, 1, 1, 0, 0, 0, "x"}, {1, 0, 1, 0, 0, 0, "g"}});
  EXPECT_EQ(result.deadlock,
            "stage 0, before F0, waits to receive 'g' of micro-batch 0 from "
            "stage 1; stage 1, before F0, waits to receive 'x' of micro-batch "
            "0 from stage 0");
}

/// The first stage sends to both others. The last one has no slot for the
/// second value before the second stage has had two, of which the second one
/// may stand behind that.
TEST(Simulate, AllThatAnActionSendsHasASlot) {
  SimulatedStage first = stage(1, {0, 1}), last = stage(1, {0, 1});
  SimulatedStage second{
      {1, 1}, {{0, 0, "F0"}, {1, 0, "F1"}, {0, 1, "B0"}, {1, 1, "B1"}}};
  std::vector<SimulatedTransfer> transfers = {
      {0, 1, 1, 0}, {0, 2, 1, 0}, {1, 2, 1, 0, 1, 0}};
  Simulation result = simulate({first, second, last}, transfers);
  EXPECT_EQ(result.deadlock, "");
  EXPECT_EQ(result.stuck,
            (std::vector<std::string>{
                "stage 0 at F1 waits for a free one of the 1 slots of stage 2",
                "stage 1 at F1 waits for micro-batch 1 of stage 0",
                "stage 2 at F0 waits for micro-batch 0 of stage 1"}));
  transfers[1].slots = 2;
  EXPECT_TRUE(simulate({first, second, last}, transfers).stuck.empty());
}

/// Whatever ends when ranks receive ahead does when they exchange one at a
/// time.
TEST(Simulate, OneAtATimeEndsWhereAheadDoes) {
  std::mt19937 random(1);
  auto below = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  constexpr int64_t numStages = 3, numLists = 3, microBatches = 3;
  int numEnding = 0, numCases = 4000;
  for (int i = 0; i < numCases; ++i) {
    std::vector<SimulatedStage> stages(numStages);
    for (SimulatedStage &made : stages) {
      made.seconds.assign(numLists, 1);
      std::vector<int64_t> lists, next(numLists, 0);
      for (int64_t list = 0; list < numLists; ++list)
        lists.insert(lists.end(), microBatches, list);
      std::shuffle(lists.begin(), lists.end(), random);
      // Where all lists were in any order, hardly a schedule would end.
      for (int64_t passes = below(6); passes > 0; --passes)
        for (size_t a = 1; a < lists.size(); ++a)
          if (lists[a - 1] > lists[a])
            std::swap(lists[a - 1], lists[a]);
      for (int64_t list : lists)
        made.order.push_back({next[list]++, list, "A"});
    }
    std::vector<SimulatedTransfer> transfers;
    for (int64_t t = 1 + below(5); t > 0; --t) {
      int64_t from = below(numStages), list = below(numLists);
      transfers.push_back({from, (from + 1 + below(numStages - 1)) % numStages,
                           1 + below(2), 0, list,
                           std::min(list + below(2), numLists - 1)});
    }
    Simulation result = simulate(stages, transfers);
    numEnding += result.stuck.empty();
    ASSERT_TRUE(result.deadlock.empty() || !result.stuck.empty())
        << i << ": " << result.deadlock;
  }
  EXPECT_GT(numEnding, numCases / 4);
  EXPECT_LT(numEnding, numCases * 3 / 4);
}

} // namespace ax::cost
