//===- ProcessesTest.cpp - Programs whose ranks are in many processes -----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each process is a thread, with an executor that has one rank.
//
//===----------------------------------------------------------------------===//
#include "ExecutorTestSupport.h"
#include "StepProgram.h"
#include "ThreadWorlds.h"

#include "gmock/gmock.h"

#include <cmath>

using namespace ax;
using namespace ax::rt;

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// The tensor with NaN in all rows but these.
HostTensor onlyRows(const HostTensor &tensor, llvm::ArrayRef<RowRange> rows) {
  HostTensor result = tensor;
  int64_t perRow = tensor.numElements() / tensor.getShape()[0];
  for (int64_t i = 0; i < tensor.numElements(); ++i) {
    bool isNeeded = llvm::any_of(rows, [&](const RowRange &range) {
      return i / perRow >= range.first && i / perRow < range.second;
    });
    if (!isNeeded)
      result.setDouble(i, NAN);
  }
  return result;
}

/// Gives each executor of a job the requests, several at a time, with no more
/// of the inputs than it needs. What process 0 gets is what `alone` gets.
void expectSame(Executor &alone, const ThreadWorlds &job,
                llvm::ArrayRef<std::unique_ptr<Executor>> executors,
                llvm::ArrayRef<std::vector<HostTensor>> inputs) {
  std::vector<std::vector<HostTensor>> wanted;
  for (const std::vector<HostTensor> &each : inputs)
    wanted.push_back(llvm::cantFail(alone.run(each)));
  job.run([&](size_t process) {
    Executor &executor = *executors[process];
    std::vector<std::unique_ptr<Request>> requests;
    for (const std::vector<HostTensor> &each : inputs) {
      requests.push_back(llvm::cantFail(executor.createRequest()));
      for (size_t i = 0; i < each.size(); ++i) {
        auto rows = executor.getNeededRows(static_cast<int32_t>(i));
        if (!rows.empty())
          requests.back()->inputs[i] = onlyRows(each[i], rows);
      }
      llvm::cantFail(executor.submit(*requests.back()));
    }
    for (size_t r = 0; r < requests.size(); ++r) {
      llvm::cantFail(executor.wait(*requests[r]));
      for (size_t o = 0; o < wanted[r].size(); ++o) {
        const HostTensor &got = requests[r]->outputs[o];
        if (executor.hasOutput(static_cast<int32_t>(o)))
          EXPECT_TRUE(got.isIdentical(wanted[r][o]))
              << "process " << process << ", request " << r << ", output " << o;
        else
          EXPECT_EQ(got.numElements(), 0);
      }
    }
  });
}

void expectSame(const ProgramBuilder &b, int numRequests = 5,
                const ExecutorOptions &options = {}) {
  auto numRanks = static_cast<int32_t>(b.program->mesh.numRanks());
  auto alone = create(b, options);
  ThreadWorlds job(numRanks);
  auto executors = takeAll(job.create(b.program, options));
  std::vector<std::vector<HostTensor>> inputs;
  for (int r = 0; r < numRequests; ++r) {
    inputs.emplace_back();
    for (const Port &port : b.program->inputs)
      inputs.back().push_back(countingTensor(port.shape, r * 100));
  }
  expectSame(*alone, job, executors, inputs);
  // States are those of the ranks that hold them.
  for (size_t s = 0; s < b.program->states.size(); ++s) {
    if (!b.program->states[s].isMutable)
      continue;
    for (const HeldPart &part : alone->getParts(static_cast<int32_t>(s))) {
      auto number = static_cast<int32_t>(s);
      Executor &holder = *executors[static_cast<size_t>(part.rank)];
      EXPECT_TRUE(
          llvm::cantFail(holder.readPart(number, part))
              .isIdentical(llvm::cantFail(alone->readPart(number, part))));
    }
  }
}

TEST(ProcessesTest, OutputsComeToProcess0) {
  for (int64_t size : {1, 2, 5, 6, 7}) {
    std::vector<sharding::Axis> axes{
        {"data", 2, false}, {"col", 2, false}, {"micro", 2, true}};
    for (const auto &split : waysToSplit(axes)) {
      ProgramBuilder b(axes);
      addMap(b, {size, size + 1}, split);
      expectSame(b);
    }
  }
}

TEST(ProcessesTest, PipelinesWithRequestsInFlight) {
  for (int32_t stages : {2, 4})
    for (int64_t microBatches : {1, 3})
      for (int64_t ranksPerStage : {1, 2})
        for (int32_t inFlight : {1, 3, 5}) {
          ProgramBuilder b =
              makePipeline(stages, microBatches, 2, ranksPerStage);
          ExecutorOptions options;
          options.maxInFlight = inFlight;
          expectSame(b, 12, options);
        }
}

TEST(ProcessesTest, ScalarsComeToAll) {
  for (bool isPipeline : {false, true}) {
    StepProgram step(isPipeline);
    expectSame(step.builder);
    ThreadWorlds job(step.numRanks());
    auto executors = takeAll(job.create(step.builder.program));
    for (size_t process = 0; process < executors.size(); ++process) {
      EXPECT_TRUE(executors[process]->hasOutput(step.loss));
      EXPECT_TRUE(executors[process]->hasOutput(step.perSample));
      EXPECT_EQ(executors[process]->hasOutput(step.output), process == 0);
      EXPECT_THAT(executors[process]->getRanks(),
                  ElementsAre(static_cast<int32_t>(process)));
    }
  }
}

TEST(ProcessesTest, RowsThatAProcessNeeds) {
  ProgramBuilder b({{"data", 2, false}, {"micro", 2, true}});
  addMap(b, {8, 3}, {{b.over("micro")[0], b.over("data")[0]}});
  ThreadWorlds job(2);
  auto executors = takeAll(job.create(b.program));
  EXPECT_THAT(executors[0]->getNeededRows(0),
              ElementsAre(RowRange(0, 2), RowRange(4, 6)));
  EXPECT_THAT(executors[1]->getNeededRows(0),
              ElementsAre(RowRange(2, 4), RowRange(6, 8)));
  auto alone = create(b);
  EXPECT_THAT(alone->getNeededRows(0), ElementsAre(RowRange(0, 8)));
  // Of a pipeline the first stage has them.
  ProgramBuilder pipeline = makePipeline(2, 1, 2);
  executors = takeAll(job.create(pipeline.program));
  EXPECT_THAT(executors[0]->getNeededRows(0), ElementsAre(RowRange(0, 12)));
  EXPECT_THAT(executors[1]->getNeededRows(0), ElementsAre());
}

TEST(ProcessesTest, StatesOfOthersCannotBeRead) {
  StepProgram step(false);
  ThreadWorlds job(step.numRanks());
  auto executors = takeAll(job.create(step.builder.program));
  auto whole = executors[0]->readState(step.weights);
  ASSERT_FALSE(bool(whole));
  EXPECT_THAT(failureOf(whole.takeError(), ExitCode::Unsupported),
              HasSubstr("state 'w' cannot be read as a whole in one process: "
                        "rank 1, which has part of it, is in another"));
  EXPECT_TRUE(bool(executors[1]->readState(step.constant)));
}

TEST(ProcessesTest, Process0TellsOfAllRanks) {
  for (bool isPipeline : {false, true}) {
    StepProgram step(isPipeline);
    ExecutorOptions options;
    options.trace = true;
    ThreadWorlds job(step.numRanks());
    auto executors = takeAll(job.create(step.builder.program, options));
    job.run([&](size_t process) {
      Executor &executor = *executors[process];
      llvm::cantFail(executor.run({StepProgram::makeInput()}).takeError());
      llvm::cantFail(executor.gatherReports());
    });
    auto alone = create(step.builder, options);
    llvm::cantFail(alone->run({StepProgram::makeInput()}).takeError());
    auto times = executors[0]->getCommandTimes();
    auto wanted = alone->getCommandTimes();
    ASSERT_EQ(times.size(), wanted.size());
    for (size_t i = 0; i < times.size(); ++i) {
      EXPECT_EQ(times[i].ranks, wanted[i].ranks) << times[i].name;
      EXPECT_EQ(times[i].executions, wanted[i].executions) << times[i].name;
    }
    EXPECT_EQ(executors[0]->getMemory().size(),
              static_cast<size_t>(step.numRanks()));
    EXPECT_EQ(executors[0]->getBubble().has_value(), isPipeline);
    EXPECT_EQ(executors[1]->getMemory().size(), 1u);
    executors[0]->clearTrace();
    EXPECT_EQ(executors[0]->getMemory().size(), 1u);
  }
}

/// Has all processes run the program once; returns each one's error.
std::vector<std::string> runAndFail(const ProgramBuilder &b,
                                    const std::vector<HostTensor> &inputs,
                                    const ExecutorOptions &options = {}) {
  ThreadWorlds job(static_cast<int32_t>(b.program->mesh.numRanks()));
  auto executors = takeAll(job.create(b.program, options));
  std::vector<std::string> messages(executors.size());
  job.run([&](size_t process) {
    auto outputs = executors[process]->run(inputs);
    EXPECT_FALSE(bool(outputs)) << process;
    if (!outputs)
      messages[process] = llvm::toString(outputs.takeError());
    EXPECT_TRUE(executors[process]->hasFailed());
  });
  return messages;
}

TEST(ProcessesTest, OneThatFailsEndsAll) {
  StepProgram step(false);
  step.builder.program->inputs[0].labels = Labels{1000, -100};
  HostTensor input = step.makeInput();
  // The last row is rank 1's.
  input.setDouble(input.numElements() - 1, 5000);
  std::vector<std::string> messages = runAndFail(step.builder, {input});
  for (const std::string &message : messages)
    EXPECT_THAT(message, HasSubstr("label 5000 of input 'x', element 15, is "
                                   "none of the 1000 classes"));
  EXPECT_THAT(messages[0], HasSubstr("(rank 1 on host 'host1')"));
}

std::atomic<bool> stayAsleep{false};

void hang(void *const *, const int64_t *scalars, int64_t, int64_t) {
  while (scalars[0] && stayAsleep)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// The process whose rank hangs notices, and not that which waits for it.
TEST(ProcessesTest, OneThatHangsEndsAll) {
  stayAsleep = true;
  ProgramBuilder b({{"col", 2, false}});
  b.stages(1);
  int32_t buffer = b.buffer(0, Space::Arena, 0, 64);
  b.kernel(0, "slow.softmax", hang, {buffer}, 1, {Scalar{0, 1, b.over("col")}});
  b.allReduce(0, b.group(0, "col"), buffer, buffer, {16});
  ExecutorOptions options;
  options.timeout = std::chrono::milliseconds(100);
  auto begin = std::chrono::steady_clock::now();
  for (const std::string &message : runAndFail(b, {}, options)) {
    EXPECT_THAT(message, HasSubstr("rank 1, stage 'forward0', 'slow.softmax'"));
    EXPECT_THAT(message, HasSubstr("no rank got on for 100 ms (rank 1 on host "
                                   "'host1')"));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  stayAsleep = false;
}

void sleepALittle(void *const *, const int64_t *, int64_t, int64_t) {
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
}

// Others can tell it when this one is missing.
TEST(ProcessesTest, ProgressIsToldWhileSomethingRuns) {
  stayAsleep = true;
  ProgramBuilder b({{"col", 2, false}});
  b.stages(1);
  int32_t buffer = b.buffer(0, Space::Arena, 0, 64);
  b.allReduce(0, b.group(0, "col"), buffer, buffer, {16});
  b.kernel(0, "slow (it is made so)", hang, {buffer}, 1, {Scalar{1, 0, {}}});
  ThreadWorlds job(2);
  auto executors = takeAll(job.create(b.program));
  EXPECT_EQ(job.worlds[1]->progress(), "between two steps");
  auto request = llvm::cantFail(executors[1]->createRequest());
  auto other = llvm::cantFail(executors[0]->createRequest());
  llvm::cantFail(executors[1]->submit(*request));
  std::string waits;
  do
    waits = job.worlds[1]->progress();
  while (waits.find("all_reduce") == std::string::npos);
  EXPECT_THAT(waits, testing::MatchesRegex(
                         "in all_reduce '.*' of stage 'forward0', number 0 of "
                         "group .*col.*"));
  llvm::cantFail(executors[0]->submit(*other));
  std::string told;
  do
    told = job.worlds[1]->progress();
  while (told.find("slow") == std::string::npos);
  EXPECT_THAT(told, testing::StartsWith("in kernel 'slow' of stage 'forward0', "
                                        "after number 0 of group "));
  stayAsleep = false;
  llvm::cantFail(executors[1]->wait(*request));
  llvm::cantFail(executors[0]->wait(*other));
  EXPECT_THAT(job.worlds[1]->progress(),
              testing::StartsWith("between two steps, after number 0 of "));
}

// Process 0 waits longer than the timeout, but not for nothing.
TEST(ProcessesTest, LongWaitsAreNoHangs) {
  ProgramBuilder b = makePipeline(2, 1, 2);
  int32_t value = b.buffer(1, Space::Arena, 0, 64);
  for (int i = 0; i < 10; ++i)
    b.kernel(1, "slow", sleepALittle, {value}, 1);
  ExecutorOptions options;
  options.timeout = std::chrono::milliseconds(200);
  expectSame(b, 1, options);
}

TEST(ProcessesTest, OneThatCannotBeginEndsAll) {
  StepProgram step(false);
  ThreadWorlds job(2);
  auto communicators = createLocalCommunicators(2);
  std::vector<std::string> messages(2);
  job.run([&](size_t process) {
    RankBackends backends;
    if (process == 0)
      backends.devices = createTestDevices(1);
    backends.communicators.push_back(std::move(communicators[process]));
    ExecutorOptions options;
    options.world = job.worlds[process];
    auto executor =
        Executor::create(step.builder.program, std::move(backends), options);
    ASSERT_FALSE(bool(executor));
    messages[process] = llvm::toString(executor.takeError());
  });
  for (const std::string &message : messages)
    EXPECT_THAT(message, HasSubstr("rank 1 on host 'host1': 0 devices and 1 "
                                   "communicators for 1 ranks"));
}

TEST(ProcessesTest, BackendsOfSomeRanks) {
  BackendOptions options;
  options.device = AX_TEST_DEVICE;
  options.ranks = {1};
  auto made = allBackends().create(2, options);
  ASSERT_FALSE(bool(made));
  EXPECT_EQ(
      failureOf(made.takeError(), ExitCode::Usage),
      "communicator 'local' is for ranks of one process, which has 1 of 2: use "
      "--comm=mpi");
  options.ranks = {0, 1};
  EXPECT_EQ(llvm::cantFail(allBackends().create(2, options)).devices.size(),
            2u);
}

TEST(ProcessesTest, AsManyProcessesAsRanks) {
  StepProgram step(false);
  ThreadWorlds job(3);
  for (auto &executor : job.create(step.builder.program)) {
    ASSERT_FALSE(bool(executor));
    EXPECT_THAT(failureOf(executor.takeError(), ExitCode::Usage),
                HasSubstr("the plan has 2 ranks, and the job has 3 processes"));
  }
}

} // namespace
