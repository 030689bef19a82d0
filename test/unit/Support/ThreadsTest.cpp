//===- ThreadsTest.cpp - Threads that may not start -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../NoThreads.h"

#include "ax/Support/Threads.h"

#include "gtest/gtest.h"

#include <atomic>

using namespace ax;

namespace {

TEST(ThreadsTest, RunWhatTheyAreGiven) {
  std::atomic<int> count{0};
  auto thread = startThread("a test", [&] { ++count; });
  ASSERT_TRUE(bool(thread));
  thread->join();
  EXPECT_EQ(count, 1);
  EXPECT_EQ(llvm::toString(tryThreads("a test", 3)), "");
}

TEST(ThreadsTest, WhereThereAreNoMoreTheLimitsAreNamed) {
  NoThreads here;
  auto thread = startThread("a test", [] {});
  ASSERT_FALSE(bool(thread));
  const char *text =
      "no thread for a test: Resource temporarily unavailable: allow more "
      "threads (ulimit -u, pids.max of the container) or memory (ulimit -v)";
  ErrorDescription error = describeError(thread.takeError());
  EXPECT_EQ(error.code, ExitCode::RunFailed);
  EXPECT_EQ(error.message, text);
  EXPECT_EQ(describeError(tryThreads("a test", 3)).message, text);
}

} // namespace
