//===- ArenaTest.cpp - Memory planned by when values live -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Cost/Arena.h"

#include <gtest/gtest.h>
#include <random>

using namespace ax::cost;

TEST(Arena, ValuesThatDoNotMeetShareMemory) {
  std::vector<Lifetime> pieces = {{100, 0, 1}, {100, 2, 3}, {50, 1, 2}};
  EXPECT_EQ(planArena(pieces), 128 + 64);
  EXPECT_EQ(pieces[0].offset, pieces[1].offset);
}

TEST(Arena, NothingNeedsNothing) {
  std::vector<Lifetime> none;
  EXPECT_EQ(planArena(none), 0);
  std::vector<Lifetime> empty = {{0, 0, 5}};
  EXPECT_EQ(planArena(empty), 0);
}

TEST(Arena, RandomLifetimesNeverOverlap) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<Lifetime> pieces(60);
    for (Lifetime &piece : pieces) {
      piece.bytes = random() % 1000;
      piece.first = random() % 40;
      piece.last = piece.first + random() % 10;
    }
    int64_t total = planArena(pieces);
    std::vector<int64_t> live(64, 0);
    for (size_t i = 0; i < pieces.size(); ++i) {
      const Lifetime &a = pieces[i];
      EXPECT_EQ(a.offset % 64, 0);
      EXPECT_LE(a.offset + a.bytes, total);
      for (int64_t at = a.first; at <= a.last; ++at)
        live[at] += a.bytes;
      for (size_t j = 0; j < i; ++j) {
        const Lifetime &b = pieces[j];
        bool meet = a.first <= b.last && b.first <= a.last;
        bool overlap =
            a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
        EXPECT_FALSE(meet && overlap) << i << " and " << j;
      }
    }
    int64_t least = *std::max_element(live.begin(), live.end());
    EXPECT_GE(total, least);
    EXPECT_LE(total, 2 * least);
  }
}
