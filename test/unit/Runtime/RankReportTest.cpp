//===- RankReportTest.cpp - What ranks tell of themselves -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "RankReport.h"

#include "ExecutorTestSupport.h"
#include "StepProgram.h"
#include "ThreadWorlds.h"

using namespace ax;
using namespace ax::rt;

namespace {

RankReport makeReport(int32_t rank, int64_t begin) {
  auto at = [](int64_t time) {
    return Clock::time_point(std::chrono::duration_cast<Clock::duration>(
        std::chrono::milliseconds(time)));
  };
  RankReport report;
  report.trace.rank = rank;
  report.trace.events = {
      {0, 0, at(begin), at(begin + 2)},
      {1, 0, at(begin + 3), at(begin + 4)},
      {TraceEvent::ports, 0, at(begin), at(begin + 1), StreamKind::Download}};
  report.memory = {10, 20, 30 + rank};
  return report;
}

TEST(RankReportTest, EventsOfAllByOneClock) {
  StepProgram step(false);
  const Program &program = *step.builder.program;
  ThreadWorlds job(2);
  job.run([&](size_t process) {
    auto rank = static_cast<int32_t>(process);
    auto all = llvm::cantFail(gatherRankReports(*job.worlds[process], program,
                                                makeReport(rank, 1000)));
    ASSERT_EQ(all.size(), process == 0 ? 2u : 0u);
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i].trace.rank, static_cast<int32_t>(i));
      EXPECT_EQ(all[i].memory.stateBytes, 30 + static_cast<int64_t>(i));
      const std::vector<TraceEvent> &events = all[i].trace.events;
      ASSERT_EQ(events.size(), 3u);
      EXPECT_EQ(events[1].stream, StreamKind::Compute);
      EXPECT_EQ(events[2].command, TraceEvent::ports);
      EXPECT_EQ(events[2].stream, StreamKind::Download);
      EXPECT_EQ(events[1].command, 1);
      EXPECT_EQ(events[0].end - events[0].begin, std::chrono::milliseconds(2));
      // The hosts of these are two, but their clocks are one.
      EXPECT_LT(
          std::chrono::abs(events[0].begin - all[0].trace.events[0].begin),
          std::chrono::seconds(10));
    }
  });
}

/// Process 0 of two, where the other sends what it is told.
class WorldOfNonsense : public ThreadWorld {
public:
  explicit WorldOfNonsense(std::string sent)
      : ThreadWorld(0, 2, std::make_shared<ThreadJob>()),
        sent(std::move(sent)) {}
  llvm::Error barrier(llvm::StringRef) override {
    return llvm::Error::success();
  }
  llvm::Expected<std::vector<std::string>>
  allGather(llvm::StringRef, std::string value) override {
    return std::vector<std::string>(2, value);
  }
  llvm::Expected<std::vector<std::string>> gather(llvm::StringRef,
                                                  std::string value) override {
    mine = value;
    return std::vector<std::string>{std::move(value), sent};
  }
  std::string sent, mine;
};

TEST(RankReportTest, WhatOthersSendIsLookedAt) {
  StepProgram step(false);
  const Program &program = *step.builder.program;
  RankReport good = makeReport(1, 5), strange = makeReport(7, 5);
  auto faultOf = [&](const std::string &sent) {
    WorldOfNonsense world(sent);
    return failureOf(gatherRankReports(world, program, good).takeError(),
                     ExitCode::RunFailed);
  };
  const std::string fault = "what another process has sent of its ranks is "
                            "none of what they can do";
  WorldOfNonsense world("");
  llvm::consumeError(gatherRankReports(world, program, good).takeError());
  std::string whole = world.mine;
  WorldOfNonsense again(whole);
  EXPECT_EQ(llvm::cantFail(gatherRankReports(again, program, good)).size(), 2u);
  EXPECT_EQ(faultOf(""), fault);
  EXPECT_EQ(faultOf("\xff\xff"), fault);
  WorldOfNonsense other("");
  llvm::consumeError(gatherRankReports(other, program, strange).takeError());
  EXPECT_EQ(faultOf(other.mine), fault);
  good.trace.events[0].command = 1000;
  llvm::consumeError(gatherRankReports(other, program, good).takeError());
  EXPECT_EQ(faultOf(other.mine), fault);
  good.trace.events[0].command = 0;
  good.trace.events[0].stream = static_cast<StreamKind>(numStreamKinds);
  llvm::consumeError(gatherRankReports(other, program, good).takeError());
  EXPECT_EQ(faultOf(other.mine), fault);
  // Whatever is damaged, nothing worse comes of it.
  good.trace.events[0].stream = StreamKind::Compute;
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x55);
    WorldOfNonsense damage(damaged);
    llvm::consumeError(gatherRankReports(damage, program, good).takeError());
  }
}

} // namespace
