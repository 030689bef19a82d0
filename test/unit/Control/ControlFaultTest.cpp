//===- ControlFaultTest.cpp - Processes that die or stop ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Jobs.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <atomic>
#include <csignal>
#include <sys/mman.h>
#include <thread>

namespace ax::rt {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::ContainsRegex;
using testing::Each;
using testing::HasSubstr;

/// How many processes have come to their steps, in memory that all have.
std::atomic<int> &numAtWork =
    *new (mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE,
               MAP_SHARED | MAP_ANONYMOUS, -1, 0)) std::atomic<int>(0);

/// Returns when so many are at work, and have told for a while what they do.
void awaitWork(int numProcesses) {
  auto last = std::chrono::steady_clock::now() + seconds(60);
  while (numAtWork < numProcesses && std::chrono::steady_clock::now() < last)
    std::this_thread::sleep_for(milliseconds(10));
  numAtWork = 0;
  std::this_thread::sleep_for(milliseconds(1500));
}

/// Long steps, which are left when the job ends.
std::string run(World &world) {
  world.setProgress([&] {
    return "busy with number " + std::to_string(world.getPlace().process);
  });
  ++numAtWork;
  std::string text = makeSteps(world, 1 << 30);
  world.setProgress(nullptr);
  return text + (world.isFirstThere() ? "" : "; process 0 is not there");
}

struct Outcome {
  std::vector<std::string> texts;
  double slowest = 0;
};

/// What all but `but` say after something has happened to that one.
Outcome collect(Processes &processes, int32_t numProcesses, int32_t but) {
  Outcome outcome;
  auto start = std::chrono::steady_clock::now();
  for (int32_t i = 0; i < numProcesses; ++i) {
    if (i == but)
      continue;
    outcome.texts.push_back(processes.wait(i, seconds(30)));
    outcome.slowest =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
    EXPECT_EQ(processes.reap(i), 0);
  }
  return outcome;
}

Change withTimeout(milliseconds timeout) {
  return [=](ControlOptions &options) { options.timeout = timeout; };
}

TEST(ControlFaultTest, WhoIsKilledIsNoticedAtOnce) {
  for (int32_t killed : {0, 1, 3}) {
    Processes processes(4, run);
    awaitWork(4);
    processes.signal(killed, SIGKILL);
    Outcome outcome = collect(processes, 4, killed);
    std::string number = std::to_string(killed);
    EXPECT_THAT(
        outcome.texts,
        Each(AllOf(HasSubstr("lost the connection to process " + number +
                             " on host host" + number + " ("),
                   ContainsRegex("[01]\\.[0-9] s ago it was busy with number " +
                                 number + "\\)"))));
    for (llvm::StringRef text : outcome.texts)
      EXPECT_EQ(text.ends_with("; process 0 is not there"), killed == 0);
    EXPECT_LT(outcome.slowest, 2);
    EXPECT_EQ(processes.reap(killed), -SIGKILL);
  }
}

TEST(ControlFaultTest, WhoIsStoppedForLongIsSaid) {
  for (int32_t stopped : {0, 2}) {
    Processes processes(3, run, withTimeout(seconds(3)));
    awaitWork(3);
    processes.signal(stopped, SIGSTOP);
    Outcome outcome = collect(processes, 3, stopped);
    std::string number = std::to_string(stopped);
    EXPECT_THAT(outcome.texts,
                Each(AllOf(HasSubstr("nothing is heard any more from process " +
                                     number + " on host host" + number),
                           HasSubstr("busy with number " + number))));
    EXPECT_GT(outcome.slowest, 1.5);
    EXPECT_LT(outcome.slowest, 3 + 5);
    // When it goes on, it is told, or notices that it is alone.
    processes.signal(stopped, SIGCONT);
    std::string own = processes.wait(stopped, seconds(10));
    EXPECT_THAT(own, HasSubstr("process "));
    if (stopped == 0)
      EXPECT_THAT(own, ContainsRegex("this process was stopped for [0-9.]+ s "
                                     "and lost the connection to process "));
    EXPECT_EQ(processes.reap(stopped), 0);
  }
}

TEST(ControlFaultTest, SeveralThatStopTogetherAreSaidTogether) {
  Processes processes(4, run, withTimeout(seconds(2)));
  awaitWork(4);
  processes.signal(1, SIGSTOP);
  processes.signal(2, SIGSTOP);
  std::string text = processes.wait(0, seconds(10));
  EXPECT_THAT(text, AllOf(HasSubstr("process 1 on host host1"),
                          HasSubstr("process 2 on host host2")));
  EXPECT_EQ(processes.reap(0), 0);
}

TEST(ControlFaultTest, WhoIsStoppedShortlyGoesOn) {
  for (int32_t stopped : {0, 1}) {
    Processes processes(
        3, [](World &world) { return makeSteps(world, 300); },
        withTimeout(seconds(6)));
    std::this_thread::sleep_for(milliseconds(500));
    processes.signal(stopped, SIGSTOP);
    std::this_thread::sleep_for(seconds(3));
    processes.signal(stopped, SIGCONT);
    Outcome outcome = collect(processes, 3, -1);
    EXPECT_THAT(outcome.texts, Each("all steps"));
  }
}

/// All stop for longer than the timeout, as a machine that sleeps: nobody has
/// been silent.
TEST(ControlFaultTest, AJobThatIsStoppedAsAWholeGoesOn) {
  Processes processes(
      3, [](World &world) { return makeSteps(world, 500); },
      withTimeout(seconds(3)));
  std::this_thread::sleep_for(milliseconds(500));
  for (int32_t i : {0, 1, 2})
    processes.signal(i, SIGSTOP);
  std::this_thread::sleep_for(seconds(5));
  for (int32_t i : {2, 1, 0})
    processes.signal(i, SIGCONT);
  Outcome outcome = collect(processes, 3, -1);
  EXPECT_THAT(outcome.texts, Each("all steps"));
}

TEST(ControlFaultTest, WhoDiesBeforeAllHaveJoinedIsSaid) {
  Processes processes(3, run, [](ControlOptions &options) {
    if (options.place.process == 2)
      std::this_thread::sleep_for(seconds(4));
  });
  std::this_thread::sleep_for(milliseconds(1500));
  processes.signal(1, SIGKILL);
  // It waits two of these for those that have not come.
  EXPECT_THAT(processes.wait(0, seconds(10)),
              HasSubstr("lost the connection to process 1 on host host1"));
  EXPECT_EQ(processes.reap(0), 0);
}

} // namespace
} // namespace ax::rt
