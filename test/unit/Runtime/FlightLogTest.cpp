//===- FlightLogTest.cpp - What a rank began, and has come past -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "FlightExchange.h"

#include "gtest/gtest.h"

using namespace ax::rt;

namespace {

/// An executor whose device is as far as the test says, and which says what it
/// does by its exchange's number, as executors do.
class FlightLogTest : public ::testing::Test {
protected:
  FlightLogTest() {
    FlightOperation first, second;
    first.executor = second.executor = executor;
    first.name = "sum0";
    second.name = "sum1";
    sum0.emplace(log, first, "col", std::vector<int32_t>{0, 1}, false);
    sum1.emplace(log, second, "col", std::vector<int32_t>{0, 1}, false);
  }
  static void queue(FlightExchange &exchange, uint64_t count) {
    exchange.begin(0, true);
    exchange.finish(count);
  }

  FlightLog log{3, /*keepsTimes=*/false};
  FlightPlace place{0, false};
  std::optional<FlightExchange> sum0, sum1;
  size_t executor = log.enter(
      {[this] { return place; }, [this] { return sum0->describe(place); }});
};

TEST_F(FlightLogTest, SaysWhatADeviceHasFinished) {
  EXPECT_EQ(log.describeLast(), "");
  EXPECT_EQ(log.describeNewest(), "");
  for (uint64_t step = 0; step < 3; ++step) {
    queue(*sum0, 10 * step + 1);
    queue(*sum1, 10 * step + 2);
  }
  sum0->begin(0, true);
  std::string begun = "its last exchange begun: number 6 of group col, 'sum0'";
  EXPECT_EQ(log.describeLast(), begun + "; finished: none");
  EXPECT_EQ(log.describeNewest(), "number 6 of group col");
  EXPECT_EQ(sum0->describe(place), "number 0 of group col");
  EXPECT_EQ(log.read().doing, "number 0 of group col");
  // It is at the one that ends with this command.
  place.begun = 11;
  EXPECT_EQ(log.describeLast(),
            begun + "; finished: number 1 of group col, 'sum1'");
  EXPECT_EQ(sum0->describe(place), "number 2 of group col");
  EXPECT_EQ(sum1->describe(place), "number 3 of group col");
  FlightRecord record = log.read();
  EXPECT_EQ(record.groups.front().started, 7U);
  EXPECT_EQ(record.groups.front().finished, 2U);
  for (const FlightEvent &event : record.events)
    EXPECT_EQ(event.finished != 0, event.sequence < 2);
  place.begun = 23;
  EXPECT_EQ(log.describeLast(),
            begun + "; finished: number 5 of group col, 'sum1'");
  EXPECT_EQ(sum0->describe(place), "number 6 of group col");
  sum0->finish(31);
  EXPECT_EQ(log.describeLast(),
            begun + "; finished: number 5 of group col, 'sum1'");
  place.isIdle = true;
  EXPECT_EQ(log.describeLast(), begun + ", and finished");
  EXPECT_EQ(sum0->describe(place), "number 6 of group col");
}

// Of what is begun first, the other one may end first.
TEST_F(FlightLogTest, ExchangesMayOverlap) {
  place.begun = 5;
  sum0->begin(0, false);
  sum1->begin(0, true);
  sum1->finish(2);
  std::string text = "its last exchange begun: number 1 of group col, 'sum1'";
  EXPECT_EQ(log.describeLast(), text + ", and finished");
  sum0->wait();
  sum0->finish(3);
  EXPECT_EQ(log.describeLast(),
            text + "; finished: number 0 of group col, 'sum0'");
}

// A device may be given more than is kept.
TEST_F(FlightLogTest, SaysOfHowManyNoneIsFinished) {
  for (uint64_t i = 0; i < 2 * FlightRing::capacity; ++i)
    queue(*sum0, i + 1);
  EXPECT_EQ(log.describeLast(),
            "its last exchange begun: number 1999 of group col, 'sum0'; "
            "finished: none of the newest 1000");
  // Where it is known no more, what was begun last is told.
  for (uint64_t i = 0; i < FlightRing::capacity; ++i)
    queue(*sum1, 3000 + i);
  EXPECT_EQ(sum0->describe(place), "number 1999 of group col");
}

// What executors did that have left, or none does, was finished at once.
TEST_F(FlightLogTest, WhatNoExecutorDoesIsFinished) {
  queue(*sum0, 7);
  log.leave(executor);
  EXPECT_EQ(
      log.describeLast(),
      "its last exchange begun: number 0 of group col, 'sum0', and finished");
  EXPECT_EQ(log.read().doing, "");
}

} // namespace
