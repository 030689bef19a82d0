//===- ExchangeCostTest.cpp - What exchanges take ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Cost/OpCost.h"

#include "gtest/gtest.h"

#include <random>

using namespace ax;
using sharding::StepKind;
using sharding::SubAxes;

namespace {

/// 8 ranks, 4 on each host; a byte in a second within, 10 seconds between.
class ExchangeCost : public ::testing::Test {
protected:
  ExchangeCost() {
    machine.link = {0, 1};
    machine.hostLink = {0, 0.1};
    machine.ranksPerHost = 4;
  }
  double seconds(StepKind kind, const SubAxes &axes, int64_t payload) const {
    return cost::collectiveCost(mesh, machine)(kind, axes, payload);
  }

  sharding::Mesh mesh{{{"pipe", 2, false},
                       {"data", 2, false},
                       {"col", 2, false},
                       {"micro", 4, true}}};
  cost::Machine machine;
};

TEST_F(ExchangeCost, GroupsOfAHostDoNotKnowOfOthers) {
  for (const char *axis : {"data", "col"})
    EXPECT_DOUBLE_EQ(seconds(StepKind::AllReduce, {mesh.whole(axis)}, 40), 40);
  EXPECT_DOUBLE_EQ(
      seconds(StepKind::AllGather, {mesh.whole("data"), mesh.whole("col")}, 40),
      30);
}

TEST_F(ExchangeCost, BetweenHostsGoesWhatRanksHaveThen) {
  EXPECT_DOUBLE_EQ(seconds(StepKind::AllReduce, {mesh.whole("pipe")}, 40), 400);
  // 2 * 3/4 * 40 within; 2 * 1/2 * 40 / 4 between.
  EXPECT_DOUBLE_EQ(
      seconds(StepKind::AllReduce,
              {mesh.whole("pipe"), mesh.whole("data"), mesh.whole("col")}, 40),
      60 + 100);
  // Each rank has 4 of 8 parts for ranks elsewhere, 5 bytes each.
  EXPECT_DOUBLE_EQ(
      seconds(StepKind::AllToAll,
              {mesh.whole("pipe"), mesh.whole("data"), mesh.whole("col")}, 40),
      15 + 200);
  EXPECT_DOUBLE_EQ(
      seconds(StepKind::CollectivePermute, {mesh.whole("pipe")}, 40), 400);
  EXPECT_DOUBLE_EQ(
      seconds(StepKind::CollectivePermute, {mesh.whole("col")}, 40), 40);
}

TEST_F(ExchangeCost, TransfersKnowWhereStagesAre) {
  auto seconds = [&] {
    return cost::linkBetween(0, 1, mesh, machine).seconds(40);
  };
  EXPECT_DOUBLE_EQ(seconds(), 400);
  machine.ranksPerHost = 8;
  EXPECT_DOUBLE_EQ(seconds(), 40);
  machine.ranksPerHost = 0;
  EXPECT_DOUBLE_EQ(seconds(), 40);
  // Ranks 2 and 6 are on one host, 3 and 7 are not.
  machine.ranksPerHost = 7;
  EXPECT_DOUBLE_EQ(seconds(), 400);
}

/// Hosts of 3: of the pairs 0 1, 2 3, ... the second one is on two hosts, and
/// of each four one rank or two are on the host that has fewer.
TEST_F(ExchangeCost, TheWorstGroupCounts) {
  machine.ranksPerHost = 3;
  EXPECT_DOUBLE_EQ(seconds(StepKind::AllReduce, {mesh.whole("col")}, 40), 400);
  EXPECT_DOUBLE_EQ(
      seconds(StepKind::AllReduce, {mesh.whole("data"), mesh.whole("col")}, 40),
      400);
}

/// What ax/Sharding/Reshard.h asks of prices, whose paths are cheapest then.
TEST(ExchangeCostRandom, OneCollectiveIsNotDearerThanSeveral) {
  std::mt19937 random(1);
  auto pick = [&](int64_t below) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(below));
  };
  for (int round = 0; round < 2000; ++round) {
    std::vector<sharding::Axis> axes;
    for (const char *name : {"a", "b", "c", "d"})
      axes.push_back({name, int64_t(1) << pick(4), false});
    sharding::Mesh mesh(axes);
    cost::Machine machine;
    machine.link = {1e-6 * static_cast<double>(pick(9)), 1e9};
    machine.hostLink = {machine.link.latency * (1 + pick(3)),
                        1e9 / static_cast<double>(1 + pick(50))};
    machine.ranksPerHost = int64_t(1) << pick(8);
    sharding::CostFn cost = cost::collectiveCost(mesh, machine);
    SubAxes first, second, both;
    for (const sharding::Axis &axis : axes)
      if (axis.size > 1 && pick(3)) {
        SubAxes &side = pick(2) ? first : second;
        side.push_back(mesh.whole(axis.name));
        both.push_back(side.back());
      }
    int64_t payload = int64_t(1024) << pick(20);
    double slack = 1 + 1e-9;
    for (StepKind kind : {StepKind::AllReduce, StepKind::ReduceScatter,
                          StepKind::AllGather, StepKind::AllToAll}) {
      // What is scattered over some axes is less for the others.
      bool shrinks =
          kind == StepKind::ReduceScatter || kind == StepKind::AllGather;
      for (const auto &[one, other] :
           {std::pair(first, second), std::pair(second, first)})
        EXPECT_LE(cost(kind, both, payload),
                  slack * (cost(kind, one, payload) +
                           cost(kind, other,
                                shrinks ? payload / sharding::numParts(one)
                                        : payload)));
    }
    EXPECT_LE(cost(StepKind::ReduceScatter, both, payload),
              slack * cost(StepKind::AllReduce, both, payload));
    EXPECT_LE(cost(StepKind::AllGather, both, payload),
              slack * cost(StepKind::AllToAll, both, payload));
  }
}

} // namespace
