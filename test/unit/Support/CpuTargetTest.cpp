//===- CpuTargetTest.cpp - Processors that code is made for ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Support/CpuTarget.h"

#include "llvm/ADT/STLExtras.h"

#include <gtest/gtest.h>

namespace ax {
namespace {

TEST(CpuTarget, NativeHasWhatItHas) {
  const CpuTarget &native = CpuTarget::native();
  EXPECT_FALSE(native.cpu.empty());
  EXPECT_EQ(CpuTarget::find("native")->describe(), native.describe());
}

TEST(CpuTarget, LevelsGrow) {
  std::vector<std::string> below;
  unsigned bits = 0;
  for (const char *name : {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"}) {
    CpuTarget target = *CpuTarget::find(name);
    EXPECT_EQ(target.cpu, name);
    EXPECT_GE(target.vectorBits, bits);
    EXPECT_TRUE(llvm::includes(target.features, below));
    EXPECT_GT(target.features.size(), below.size());
    below = target.features;
    bits = target.vectorBits;
  }
  EXPECT_EQ(bits, 512u);
}

} // namespace
} // namespace ax
