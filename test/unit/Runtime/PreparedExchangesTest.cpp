//===- PreparedExchangesTest.cpp - Ranks that are to do other things ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each process is a thread, with a program of its own.
//
//===----------------------------------------------------------------------===//
#include "PreparedExchanges.h"
#include "ExecutorTestSupport.h"
#include "StepProgram.h"
#include "ThreadWorlds.h"

#include "gmock/gmock.h"

using namespace ax;
using namespace ax::rt;

namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Two ranks, which sum tensors of these sizes, in as many micro-batches.
std::shared_ptr<Program> makeSums(const std::vector<int64_t> &sizes,
                                  int64_t microBatches = 1) {
  ProgramBuilder b({{"col", 2, false}, {"micro", microBatches, true}});
  b.stages(1);
  int32_t buffer = b.buffer(0, Space::Arena, 0, 256);
  int32_t group = b.group(0, "col");
  for (int64_t size : sizes)
    b.allReduce(0, group, buffer, buffer, {size});
  return b.program;
}

/// Returns the error that both processes have, where they have one.
std::string disagree(const std::shared_ptr<Program> &first,
                     const std::shared_ptr<Program> &second) {
  ThreadWorlds job(2);
  std::vector<std::string> messages;
  for (auto &made :
       job.create(std::vector<std::shared_ptr<Program>>{first, second}))
    messages.push_back(made ? ""
                            : failureOf(made.takeError(), ExitCode::Usage));
  EXPECT_EQ(messages[0], messages[1]);
  return messages[0];
}

TEST(PreparedExchangesTest, EqualOnesAreFine) {
  EXPECT_EQ(disagree(makeSums({4, 8}, 2), makeSums({4, 8}, 2)), "");
  for (bool isPipeline : {false, true}) {
    StepProgram step(isPipeline);
    EXPECT_TRUE(create(step.builder));
  }
}

// As two results of one node are called, which the next stage reads the other
// way round.
TEST(PreparedExchangesTest, TransfersOfOneNameHaveNoOrderAmongThem) {
  ProgramBuilder b({{"pipe", 2, false}, {"micro", 2, true}});
  b.stages(2);
  for (int64_t bytes : {16, 32}) {
    int32_t transfer = b.transfer(0, bytes, 2);
    b.program->transfers[static_cast<size_t>(transfer)].name = "node";
    int32_t buffer = b.buffer(0, Space::Arena, 16 * transfer, bytes);
    b.add(0, SendCommand{transfer, {buffer, 0}}, "send");
  }
  for (int32_t transfer : {1, 0})
    b.add(1, RecvCommand{transfer}, "recv");
  EXPECT_EQ(disagree(b.program, b.program), "");
}

TEST(PreparedExchangesTest, OneMoreIsNamed) {
  EXPECT_EQ(disagree(makeSums({4}), makeSums({4, 8})),
            "rank 1 on host 'host1' does not do in group {col} what rank 0 on "
            "host 'host0' does: it prepares as number 1 'sum0' (all_reduce 8 "
            "f32, 32 bytes), and on the other it prepares nothing more");
}

TEST(PreparedExchangesTest, AnotherNameIsNamed) {
  auto other = makeSums({4, 8});
  other->stages[0].lists[0].commands[1].name = "mean";
  EXPECT_THAT(disagree(makeSums({4, 8}), other),
              AllOf(HasSubstr("it prepares as number 1 'mean' (all_reduce 8 "
                              "f32, 32 bytes), and on the other it prepares as "
                              "number 1 'sum0'")));
}

TEST(PreparedExchangesTest, AnotherOrderOfAStepIsNamed) {
  auto other = makeSums({4}, 2);
  std::vector<Action> &schedule = other->stages[0].schedule;
  ASSERT_EQ(schedule.size(), 2u);
  std::swap(schedule[0], schedule[1]);
  EXPECT_THAT(
      disagree(makeSums({4}, 2), other),
      HasSubstr("a step starts as number 0 'sum0' (all_reduce 4 f32, 16 "
                "bytes) of micro-batch 1, and on the other a step "
                "starts as number 0"));
}

TEST(PreparedExchangesTest, AGroupThatOneLacksIsNamed) {
  EXPECT_EQ(
      disagree(makeSums({4}), makeSums({})),
      "rank 1 on host 'host1' does nothing in group {col}, where rank 0 on "
      "host 'host0' waits for it: it prepares as number 0 'sum0' "
      "(all_reduce 4 f32, 16 bytes)");
}

TEST(PreparedExchangesTest, WhatNobodySendsIsAnError) {
  ThreadWorlds job(2);
  job.run([&](size_t process) {
    World &world = *job.worlds[process];
    if (process == 0) {
      EXPECT_THAT(failureOf(agreeOnExchanges(world, {}), ExitCode::RunFailed),
                  HasSubstr("what another process has sent of its exchanges is "
                            "none of what it can be"));
      return;
    }
    llvm::cantFail(world.gather("prepared exchanges", "\xff").takeError());
    llvm::cantFail(
        world.broadcast("whether ranks prepared the same", "").takeError());
  });
}

} // namespace
