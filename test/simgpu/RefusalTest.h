//===- RefusalTest.h - What device cuda leaves to the CPU -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_REFUSALTEST_H
#define AX_TEST_REFUSALTEST_H

#include "ProductRunner.h"
#include "TestSimgpu.h"

#include "gtest/gtest.h"

namespace ax::rt {

/// Each test begins with a simulated GPU, for which other runs have kept
/// nothing.
class RefusalTest : public ::testing::Test {
protected:
  RefusalTest() {
    setenv("AXOPT_CACHE", "/proc/none", 1);
    startSimgpu();
  }
  ~RefusalTest() override { unsetenv("AXOPT_CACHE"); }

  /// Expects that the device does not compute it, and says why.
  static void expect(const LibraryDesc &desc, const std::string &why) {
    ErrorDescription error = ProductRunner().refusal(desc);
    EXPECT_EQ(error.code, ExitCode::Unsupported);
    EXPECT_EQ(error.message,
              "device cuda does not compute " + toString(desc) + ": " + why);
  }
};

} // namespace ax::rt

#endif // AX_TEST_REFUSALTEST_H
