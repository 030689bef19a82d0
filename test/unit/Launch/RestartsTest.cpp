//===- RestartsTest.cpp - What follows a run ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "axlaunch/Launch.h"

#include "gtest/gtest.h"

using namespace ax;

constexpr int failed = 8, killed = 128 + 9;

// Also where the loss is not finite, or there is no such command.
TEST(Restarts, EndWhereAxrunHasDecided) {
  for (int code : {0, 2, 3, 4, 5, 6, 7, 9, 70, 126, 127, 130, 143})
    EXPECT_EQ(Restarts(3, 1).after(code, false), Next::End) << code;
}

TEST(Restarts, FollowFailures) {
  // A rank's, a signal's, and launchers' that cannot start it.
  for (int code : {failed, killed, 1, 255, 128 + 6})
    EXPECT_EQ(Restarts(3, 0).after(code, false), Next::Again) << code;
  Restarts restarts(3, 0);
  for (int run = 0; run < 3; ++run)
    EXPECT_EQ(restarts.after(killed, true), Next::Again);
  EXPECT_EQ(restarts.after(killed, true), Next::GiveUpOften);
  EXPECT_EQ(Restarts(0, 0).after(killed, true), Next::GiveUpOften);
}

TEST(Restarts, GiveUpAfterTwoWithoutAStep) {
  Restarts restarts(9, 0);
  EXPECT_EQ(restarts.after(failed, false), Next::Again);
  EXPECT_EQ(restarts.after(failed, true), Next::Again);
  EXPECT_EQ(restarts.after(killed, false), Next::Again);
  EXPECT_EQ(restarts.after(failed, false), Next::GiveUpIdle);
}

TEST(Restarts, TakeFewerRanksInstead) {
  Restarts restarts(9, 2);
  EXPECT_EQ(restarts.after(failed, true), Next::Again);
  for (int fallback = 0; fallback < 2; ++fallback) {
    EXPECT_EQ(restarts.after(1, false), Next::Again);
    EXPECT_EQ(restarts.after(1, false), Next::FewerRanks);
  }
  EXPECT_EQ(restarts.after(1, false), Next::Again);
  EXPECT_EQ(restarts.after(1, false), Next::GiveUpIdle);
  // A fallback is a restart, too.
  Restarts few(1, 1);
  EXPECT_EQ(few.after(1, false), Next::Again);
  EXPECT_EQ(few.after(1, false), Next::GiveUpOften);
}
