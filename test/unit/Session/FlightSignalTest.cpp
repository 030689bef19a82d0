//===- FlightSignalTest.cpp - Flight records on SIGUSR2 -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../../../lib/Session/FlightSignal.h"
#include "../NoThreads.h"

#include "ax/Support/Error.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"

using namespace ax;

namespace {

TEST(FlightSignalTest, NeedsAThread) {
  llvm::SmallString<128> folder;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("flight", folder));
  llvm::scope_exit remove([&] { llvm::sys::fs::remove_directories(folder); });
  auto recorder =
      llvm::cantFail(rt::FlightRecorder::create(folder.str().str()));
  NoThreads here;
  auto made = FlightSignal::create(recorder, {});
  ASSERT_FALSE(bool(made));
  ErrorDescription error = describeError(made.takeError());
  EXPECT_EQ(error.code, ExitCode::RunFailed);
  EXPECT_EQ(error.message,
            "no thread for SIGUSR2: Resource temporarily unavailable: allow "
            "more threads (ulimit -u, pids.max of the container) or memory "
            "(ulimit -v)");
  // Nobody takes the signal.
  struct sigaction now = {};
  ::sigaction(SIGUSR2, nullptr, &now);
  EXPECT_EQ(now.sa_handler, SIG_DFL);
}

} // namespace
