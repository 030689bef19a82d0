//===- PulseTest.cpp - Time in which nobody is silent ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Peer.h"

#include "gtest/gtest.h"

namespace ax::rt::control {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class PulseTest : public testing::Test {
protected:
  /// Returns what a turn of the channel's thread finds that begins with
  /// `worked` and sleeps for `longer` than it wanted to.
  Clock::duration turn(Clock::duration worked, Clock::duration longer) {
    now += worked;
    now += milliseconds(pulse.beforeSleep(now)) + longer;
    Clock::duration stopped = pulse.afterSleep(now);
    pulse.isDue(now);
    return stopped;
  }

  Pulse pulse{seconds(3)};
  Clock::time_point now = Clock::now();
};

TEST_F(PulseTest, AStopIsFoundWhereverItComes) {
  EXPECT_EQ(turn({}, {}), Clock::duration(0));
  EXPECT_EQ(turn({}, seconds(5)), seconds(5));
  EXPECT_EQ(turn({}, {}), Clock::duration(0));
  // Also while it is at work, not asleep.
  EXPECT_GE(turn(seconds(5), {}), seconds(4));
  EXPECT_EQ(turn({}, {}), Clock::duration(0));
}

TEST_F(PulseTest, WorkAndLateTimersAreNoStops) {
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(turn(milliseconds(20), milliseconds(20)), Clock::duration(0));
}

TEST_F(PulseTest, AStopIsToldForAWhile) {
  turn({}, milliseconds(900));
  EXPECT_EQ(pulse.describeStop(now), "");
  turn({}, milliseconds(3800));
  EXPECT_EQ(pulse.describeStop(now + seconds(10)),
            "this process was stopped for 3.8 s and ");
  EXPECT_EQ(pulse.describeStop(now + seconds(11)), "");
}

TEST_F(PulseTest, WhoMayHaveSpokenIsExcusedUntilNow) {
  Peer peer;
  peer.lastHeard = now - seconds(6);
  peer.excuse(seconds(5), now);
  EXPECT_EQ(peer.lastHeard, now - seconds(1));
  peer.excuse(seconds(5), now);
  EXPECT_EQ(peer.lastHeard, now);
}

} // namespace
} // namespace ax::rt::control
