//===- FlagsTest.cpp - Texts of flags -------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Support/Flags.h"

#include "ax/Support/AtomicFile.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <filesystem>

using namespace ax;

namespace {

TEST(FlagsTest, FilesMayHoldEqualSigns) {
  char pattern[] = "/tmp/axflagsXXXXXX";
  std::string folder = mkdtemp(pattern), file = folder + "/a=b";
  ASSERT_FALSE(bool(writeFileAtomically(file, llvm::StringRef("x"))));
  using Pair = std::pair<llvm::StringRef, llvm::StringRef>;
  EXPECT_EQ(splitAtFile("x=" + file), Pair("x", file));
  EXPECT_EQ(splitAtFile("k=v=" + file), Pair("k=v", file));
  EXPECT_EQ(splitAtFile("x=a=b"), Pair("x", "a=b"));
  EXPECT_EQ(splitAtFile("x"), Pair("x", ""));
  EXPECT_EQ(splitAtFile("=" + file), Pair("", file));
  std::filesystem::remove_all(folder);
}

TEST(FlagsTest, NumbersAreDecimalDigits) {
  for (auto [text, number] :
       {std::pair("0", 0.), std::pair("1", 1.), std::pair("-0.5", -0.5),
        std::pair("+2", 2.), std::pair(".5", 0.5), std::pair("5.", 5.),
        std::pair("1e-3", 1e-3), std::pair("2E+3", 2e3)})
    EXPECT_EQ(parseNumber(text), number) << text;
  for (const char *text : {"",   "-",   "+",     "+-1",   "--1", "1x",   " 1",
                           "1 ", "0x1", "0x1p3", "nan",   "inf", "-inf", "1e",
                           "e1", "1,5", "1e999", "1.2.3", "0b1", "1_000"})
    EXPECT_FALSE(parseNumber(text)) << text;
}

TEST(FlagsTest, Nesting) {
  EXPECT_FALSE(nestsDeeper("{\"[[[[\\\"[[\": [1, 2], \"b\": {}}", 2));
  EXPECT_TRUE(nestsDeeper("{\"a\": [(1)]}", 2));
  EXPECT_FALSE(nestsDeeper("[][][]", 1));
  EXPECT_TRUE(nestsDeeper(std::string(1000000, '['), 100));
}

} // namespace
