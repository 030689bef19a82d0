//===- CommandTimesTest.cpp - Where the time of traces went ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ProgramBuilder.h"
#include "Trace.h"

#include <gtest/gtest.h>

using namespace ax::rt;
using std::chrono::milliseconds;

namespace {

/// Two stages of two ranks: a kernel, a sum that is started and awaited, and a
/// value that the second stage receives.
std::shared_ptr<Program> twoStages() {
  ProgramBuilder b({{"pipe", 2}, {"col", 2}});
  b.stages(2);
  int32_t x = b.buffer(0, Space::Arena, 0, 64);
  b.kernel(0, "work", doublePlusOne, {x, x}, 1);
  b.allReduce(0, b.group(0, "col"), x, x, {16}, /*request=*/0);
  b.add(0, WaitCommand{0}, "sum");
  int32_t sent = b.transfer(0, 64, 2);
  b.add(0, SendCommand{sent, {x, 0}}, "send");
  b.add(1, RecvCommand{sent}, "recv");
  return b.program;
}

/// One command after another, of so many milliseconds.
RankTrace traceOf(int32_t rank, int32_t stage,
                  const std::vector<std::pair<int32_t, int>> &events) {
  RankTrace trace;
  trace.rank = rank;
  trace.stage = stage;
  Clock::time_point now;
  for (auto [command, took] : events) {
    trace.events.push_back({command, 0, now, now + milliseconds(took)});
    now += milliseconds(took);
  }
  return trace;
}

TEST(CommandTimes, WaitingIsWhatTheLastRankToComeDoesNotNeed) {
  auto program = twoStages();
  // Twice: 0 is the kernel, 1 the start, 2 the wait, 3 the send.
  RankTrace first = traceOf(
      0, 0, {{0, 5}, {1, 1}, {2, 9}, {3, 1}, {0, 5}, {1, 1}, {2, 2}, {3, 1}});
  RankTrace second = traceOf(
      1, 0, {{0, 9}, {1, 2}, {2, 4}, {3, 1}, {0, 2}, {1, 1}, {2, 6}, {3, 1}});
  RankTrace third = traceOf(2, 1, {{0, 20}, {0, 3}});
  RankTrace fourth = traceOf(3, 1, {{0, 18}, {0, 4}});
  std::vector<CommandTime> times =
      sumCommandTimes(*program, {&first, &second, &third, &fourth});
  ASSERT_EQ(times.size(), 5u);
  auto expect = [&](size_t i, int64_t executions, int total, int waiting,
                    bool isExchange) {
    EXPECT_EQ(times[i].ranks, 2) << i;
    EXPECT_EQ(times[i].executions, executions) << i;
    EXPECT_EQ(times[i].total, milliseconds(total)) << i;
    EXPECT_EQ(times[i].waiting, milliseconds(waiting)) << i;
    EXPECT_EQ(times[i].isExchange, isExchange) << i;
  };
  expect(0, 4, 21, 0, false);
  expect(1, 4, 5, 1, true);
  // 9 beside 4, then 2 beside 6.
  expect(2, 4, 21, 9, true);
  expect(3, 4, 4, 0, true);
  expect(4, 4, 45, 45, true);
}

/// What streams of one rank do in milliseconds, as they were recorded.
TraceEvent eventOf(int32_t command, int begin, int end,
                   StreamKind stream = StreamKind::Compute) {
  Clock::time_point origin;
  return {command, 0, origin + milliseconds(begin), origin + milliseconds(end),
          stream};
}

TEST(CommandTimes, ExchangesBesideComputingTakeTheirOwnTime) {
  auto program = twoStages();
  RankTrace first, second;
  second.rank = 1;
  // Computes while the sum is made: from 1 on, and waits from 5 to 8 for it.
  first.events = {eventOf(TraceEvent::ports, 0, 9, StreamKind::Upload),
                  eventOf(1, 1, 1),
                  eventOf(1, 1, 7, StreamKind::Exchange),
                  eventOf(0, 1, 5),
                  eventOf(2, 5, 8),
                  eventOf(1, 7, 8, StreamKind::Exchange),
                  eventOf(3, 8, 8),
                  eventOf(3, 8, 12, StreamKind::Send)};
  // Comes last, to what takes 2 then, and computes nothing meanwhile.
  second.events = {eventOf(0, 0, 6), eventOf(1, 6, 6),
                   eventOf(1, 6, 7, StreamKind::Exchange), eventOf(2, 6, 8),
                   eventOf(1, 7, 8, StreamKind::Exchange)};
  std::vector<CommandTime> times = sumCommandTimes(*program, {&first, &second});
  auto expect = [&](size_t i, int64_t executions, int total, int held,
                    int waiting) {
    EXPECT_EQ(times[i].executions, executions) << i;
    EXPECT_EQ(times[i].total, milliseconds(total)) << i;
    EXPECT_EQ(times[i].held, milliseconds(held)) << i;
    EXPECT_EQ(times[i].waiting, milliseconds(waiting)) << i;
  };
  expect(0, 2, 10, 10, 0);
  // 7 beside 2, of which the waits are 3 and 2; the first needs 2, too.
  expect(1, 2, 9, 5, 5);
  expect(2, 2, 0, 0, 0);
  expect(3, 1, 4, 0, 0);
}

} // namespace
