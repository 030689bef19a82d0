//===- JobGuardTest.cpp - What ends a process that does not ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../../../lib/Session/JobGuard.h"
#include "../NoThreads.h"

#include "ax/Support/Error.h"

#include "gtest/gtest.h"

#include <future>

using namespace ax;
using namespace std::chrono_literals;

namespace {

/// A guard that says with what it would end the process, and goes on.
class JobGuardTest : public ::testing::Test {
protected:
  void make() {
    guard = llvm::cantFail(
        JobGuard::create(*world, [this](const std::string &reason, int code) {
          ended.set_value({reason, code});
          // As long as the process would take.
          goOn.get_future().wait();
        }));
  }

  std::unique_ptr<rt::World> world = rt::makeLoneWorld();
  std::promise<std::pair<std::string, int>> ended;
  std::promise<void> goOn;
  std::unique_ptr<JobGuard> guard;
};

// A pipe would be full, and the handler would wait for the guard's thread.
TEST_F(JobGuardTest, AHandlerWaitsForNobodyHoweverManySignalsCome) {
  make();
  std::raise(SIGTERM);
  // The guard's thread hears no more.
  EXPECT_EQ(ended.get_future().get(), std::pair(std::string(), 143));
  for (int i = 0; i < 200000; ++i)
    std::raise(SIGTERM);
  EXPECT_TRUE(guard->wasTerminated());
  guard->letEnd();
  goOn.set_value();
}

TEST_F(JobGuardTest, WhatIsNotOverInTimeIsEnded) {
  make();
  auto since = std::chrono::steady_clock::now();
  guard->setLimit(200ms, "it does not end");
  EXPECT_EQ(ended.get_future().get(),
            std::pair(std::string("it does not end"), 8));
  EXPECT_GE(std::chrono::steady_clock::now() - since, 200ms);
  goOn.set_value();
}

TEST_F(JobGuardTest, WhatIsOverInTimeIsNot) {
  make();
  guard->setLimit(10min, "it does not end");
  guard.reset();
  EXPECT_EQ(ended.get_future().wait_for(0s), std::future_status::timeout);
}

TEST_F(JobGuardTest, NeedsAThread) {
  NoThreads here;
  auto made = JobGuard::create(*world, {});
  ASSERT_FALSE(bool(made));
  EXPECT_NE(llvm::toString(made.takeError())
                .find("no thread for what ends this process with its job: "),
            std::string::npos);
}

} // namespace
