//===- PhiloxTest.cpp - Random numbers that others give, too --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Support/Philox.h"

#include "gtest/gtest.h"

#include <vector>

using namespace ax;

// Of the authors' own program, Random123.
TEST(PhiloxTest, KnownAnswers) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(philox::generate({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox::generate({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox::generate({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                             {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// All that a number depends on counts, and numbers fill [0, 1).
TEST(PhiloxTest, Uniform) {
  std::vector<float> some{philox::uniform(1, 2, 3, 4),
                          philox::uniform(2, 2, 3, 4),
                          philox::uniform(1, 3, 3, 4),
                          philox::uniform(1, 2, 4, 4),
                          philox::uniform(1, 2, 3, 5),
                          philox::uniform(1ull << 32 | 1, 2, 3, 4),
                          philox::uniform(1, 1ull << 32 | 2, 3, 4)};
  for (size_t i = 0; i < some.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      EXPECT_NE(some[i], some[j]);
  int64_t tenths[10] = {};
  for (uint64_t i = 0; i < 10000; ++i) {
    float x = philox::uniform(i, 7, 0, 0);
    ASSERT_TRUE(x >= 0 && x < 1);
    ++tenths[static_cast<int>(x * 10)];
  }
  for (int64_t count : tenths)
    EXPECT_NEAR(count, 1000, 120);
}
