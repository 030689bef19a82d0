//===- EventFileTest.cpp - Checksums of records ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../../../lib/Session/EventFile.h"

#include <gtest/gtest.h>

using namespace ax;

namespace {

/// RFC 3720, B.4.
TEST(EventFile, ChecksumsAreThoseOfTheStandard) {
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string up;
  for (char c = 0; c < 32; ++c)
    up += c;
  EXPECT_EQ(crc32c(up), 0x46dd794eu);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
}

} // namespace
