//===- ExecutorFailures.cpp - Runs that end with an error, or must not ----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ExecutorTestSupport.h"
#include "TestDevice.h"

#include <array>
#include <atomic>
#include <thread>

using namespace ax;
using namespace ax::rt;

namespace {

std::atomic<bool> stayAsleep{false};

/// scalars[0]: the rank that hangs is the one with 1.
void hang(void *const *, const int64_t *scalars, int64_t, int64_t) {
  while (scalars[0] && stayAsleep)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

ProgramBuilder makeHanging(bool collective) {
  ProgramBuilder b({{"col", 2, false}});
  b.stages(1);
  int32_t buffer = b.buffer(0, Space::Arena, 0, 64);
  b.kernel(0, "slow.softmax", hang, {buffer}, 1, {Scalar{0, 1, b.over("col")}});
  if (collective)
    b.allReduce(0, b.group(0, "col"), buffer, buffer, {16});
  return b;
}

// A hanging kernel cannot be ended, but the run ends, and names it.
TEST(ExecutorFailures, HangsEndInBoundedTime) {
  for (bool collective : {false, true}) {
    stayAsleep = true;
    ProgramBuilder b = makeHanging(collective);
    ExecutorOptions options;
    options.timeout = std::chrono::milliseconds(100);
    auto executor = create(b, options);
    ASSERT_TRUE(executor);
    auto begin = std::chrono::steady_clock::now();
    auto outputs = executor->run({});
    ASSERT_FALSE(bool(outputs));
    EXPECT_LT(std::chrono::steady_clock::now() - begin,
              std::chrono::seconds(5));
    std::string message = failureOf(outputs.takeError(), ExitCode::RunFailed);
    for (const char *part :
         {"rank 1", "'forward0'", "slow.softmax", "no rank got on for 100 ms"})
      EXPECT_NE(message.find(part), std::string::npos) << message;
    auto again = executor->run({});
    failureOf(again.takeError(), ExitCode::RunFailed);
    stayAsleep = false;
  }
}

// Nobody waits for what was submitted, but the end does.
TEST(ExecutorFailures, TheEndComesInBoundedTime) {
  stayAsleep = true;
  ExecutorOptions options;
  options.timeout = std::chrono::milliseconds(100);
  auto executor = create(makeHanging(true), options);
  ASSERT_TRUE(executor);
  auto request = llvm::cantFail(executor->createRequest());
  llvm::cantFail(executor->submit(*request));
  auto begin = std::chrono::steady_clock::now();
  executor.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  stayAsleep = false;
}

void sleepALittle(void *const *, const int64_t *, int64_t, int64_t) {
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
}

// The second stage waits longer than the timeout, but not for nothing.
TEST(ExecutorFailures, LongWaitsAreNoHangs) {
  ProgramBuilder b({{"pipe", 2, false}});
  b.stages(2);
  b.transfer(0, 64, 1);
  int32_t value = b.buffer(0, Space::Arena, 0, 64);
  for (int i = 0; i < 10; ++i)
    b.kernel(0, "slow", sleepALittle, {value}, 1);
  b.add(0, SendCommand{0, {value, 0}}, "send");
  b.buffer(1, Space::Received, 0, 64);
  b.add(1, RecvCommand{0}, "recv");
  ExecutorOptions options;
  options.timeout = std::chrono::milliseconds(200);
  auto executor = create(b, options);
  ASSERT_TRUE(executor);
  auto outputs = executor->run({});
  EXPECT_TRUE(bool(outputs)) << llvm::toString(outputs.takeError());
}

bool takesPlainWeights() {
  constexpr int64_t n = 256;
  MatmulDesc desc;
  desc.a = desc.c = TensorDesc::dense(DType::F32, {1, n});
  desc.b = TensorDesc::dense(DType::F32, {n, n});
  desc.constantB = true;
  auto devices = createTestDevices(1);
  auto weight = llvm::cantFail(devices[0]->allocate(desc.b.spanBytes()));
  return llvm::cantFail(devices[0]->prepare(desc, {weight->getAddress(), 17}))
      ->readsConstant();
}

// Packing so large a weight takes longer than the timeout.
TEST(ExecutorFailures, PreparingEndsInBoundedTime) {
  ProgramBuilder b({});
  b.stages(1);
  constexpr int64_t n = 6144;
  Shape shape{n, n};
  MatmulDesc desc;
  desc.a = desc.c = TensorDesc::dense(DType::F32, {1, n});
  desc.b = TensorDesc::dense(DType::F32, shape);
  desc.constantB = true;
  if (takesPlainWeights())
    GTEST_SKIP() << "this processor's matmul takes plain weights";
  b.state("w", HostTensor(DType::F32, shape), b.split(shape, {}));
  LibraryCommand matmul;
  matmul.desc = desc;
  matmul.arguments = {{b.buffer(0, Space::Arena, 0, n * 4), 0},
                      {b.buffer(0, Space::State, 0, desc.b.spanBytes()), 0},
                      {b.buffer(0, Space::Arena, 0, n * 4), 0}};
  b.add(0, matmul, "linear");
  ExecutorOptions options;
  options.timeout = std::chrono::milliseconds(1);
  auto executor = createExecutor(b.program, options);
  ASSERT_FALSE(bool(executor));
  std::string message = failureOf(executor.takeError(), ExitCode::RunFailed);
  for (const char *part :
       {"rank 0, stage 'forward0'", "no rank got on for 1 ms"})
    EXPECT_NE(message.find(part), std::string::npos) << message;
}

// What verified plans have; one that was compiled may have been changed.
TEST(ExecutorFailures, StatesThatNobodyPreparesAreRefused) {
  ProgramBuilder b({{"col", 1, false}});
  b.stages(1);
  int32_t w = b.state("w", countingTensor({4}), b.split({4}, {}));
  b.program->states[0].value = {};
  b.program->states[0].isPrepared = true;
  int32_t from = b.buffer(0, Space::State, w, 16);
  int32_t to = b.buffer(0, Space::Arena, 0, 16);
  b.kernel(0, "double", doublePlusOne, {from, to}, 4);
  auto executor = createExecutor(b.program);
  ASSERT_FALSE(bool(executor));
  std::string message = failureOf(executor.takeError(), ExitCode::BadPlan);
  EXPECT_NE(message.find("state 'w' is to be prepared, and no program of the "
                         "plan prepares it"),
            std::string::npos)
      << message;
}

/// Checks of three of 12 indices by each of two ranks in each of two
/// micro-batches, the second in order first. Inputs have their words, as
/// kernels would make them.
ProgramBuilder makeChecks() {
  ProgramBuilder b({{"data", 2, false}, {"micro", 2, true}});
  sharding::SubAxes axes{b.over("micro")[0], b.over("data")[0]};
  b.stages(1);
  for (int64_t order : {2, 1}) {
    std::string name = "check" + std::to_string(order);
    int32_t words = b.input(name, {8}, b.split({8}, {axes}));
    b.program->inputs.back().dtype = DType::I64;
    FaultCommand command;
    command.check.indices = TensorDesc::dense(DType::I64, {3});
    command.check.sizes = {7};
    command.check.layout = b.split({12}, {axes});
    command.check.order = order;
    command.word = {b.buffer(0, Space::Input, words, faultWordBytes), 0};
    b.add(0, command, name);
  }
  return b;
}

/// [micro][data] -> [place, index].
HostTensor words(std::array<int64_t, 8> values) {
  return HostTensor::fromValues<int64_t>({8}, values);
}

TEST(ExecutorFailures, TheFirstFaultOfKernelsIsTold) {
  constexpr int64_t none = INT64_MAX;
  const HostTensor good = words({none, 0, none, 0, -1, 9, 3, 9});
  struct Case {
    HostTensor second, first;
    const char *message;
  };
  const Case cases[] = {
      {words({0, 10, none, 0, none, 0, none, 0}), good,
       "rank 0, stage 'forward0', 'check2' (check_indices 3 i64 below 7): "
       "index 10 is out of range of a dimension of 7"},
      // A later micro-batch has later indices, the second rank's follow.
      {words({none, 0, 2, 11, 0, 12, 0, 13}), good,
       "rank 1, stage 'forward0', 'check2' (check_indices 3 i64 below 7): "
       "index 11 is out of range of a dimension of 7"},
      {words({none, 0, none, 0, 2, 12, 0, 13}), good, "index 12 is out"},
      // Of an earlier check all come before.
      {words({0, 10, 0, 11, 0, 12, 0, 13}),
       words({none, 0, none, 0, none, 0, 2, -8}),
       "rank 1, stage 'forward0', 'check1' (check_indices 3 i64 below 7): "
       "index -8 is out of range of a dimension of 7"}};
  ProgramBuilder b = makeChecks();
  for (const Case &test : cases) {
    auto executor = create(b);
    ASSERT_TRUE(executor);
    auto outputs = executor->run({good, good});
    EXPECT_TRUE(bool(outputs)) << llvm::toString(outputs.takeError());
    outputs = executor->run({test.second, test.first});
    ASSERT_FALSE(bool(outputs));
    std::string message = failureOf(outputs.takeError(), ExitCode::RunFailed);
    EXPECT_NE(message.find(test.message), std::string::npos) << message;
  }
}

TEST(ExecutorFailures, CountsThatAreTooLargeAreTold) {
  for (auto [count, says] :
       {std::pair(int64_t(-1), "'n' (at_most 6): there cannot be -1"),
        std::pair(int64_t(9), "'n' (at_most 6): there are 9, and axopt --max "
                              "gave room for 6")}) {
    ProgramBuilder b({{"data", 1, false}});
    b.stages(1);
    int32_t input = b.input("word", {2}, b.split({2}, {}));
    b.program->inputs.back().dtype = DType::I64;
    FaultCommand command;
    command.check.indices = TensorDesc::dense(DType::I64, {});
    command.check.sizes = {7};
    command.check.isCount = true;
    command.word = {b.buffer(0, Space::Input, input, faultWordBytes), 0};
    b.add(0, command, "n");
    auto executor = create(b);
    ASSERT_TRUE(executor);
    auto outputs =
        executor->run({HostTensor::fromValues<int64_t>({2}, {0, count})});
    ASSERT_FALSE(bool(outputs));
    std::string message = failureOf(outputs.takeError(), ExitCode::RunFailed);
    EXPECT_NE(message.find(says), std::string::npos) << message;
  }
}

TEST(ExecutorFailures, TooManyThreadsAreRefused) {
  for (auto [ranks, threads] :
       {std::pair(mostThreads + 1, 1), std::pair(int64_t(2), 1 << 30),
        std::pair(int64_t(1), 0), std::pair(int64_t(1), -1)}) {
    ProgramBuilder b({{"data", ranks, false}});
    b.stages(1);
    auto executor = createExecutor(b.program, {}, {threads});
    ASSERT_FALSE(bool(executor));
    std::string message = failureOf(executor.takeError(), ExitCode::Usage);
    const char *says = threads < 1 ? ": a rank has 1 thread or more"
                                   : "one process runs 1 to 4096 threads";
    EXPECT_NE(message.find(says), std::string::npos) << message;
  }
}

TEST(ExecutorFailures, RanksWithoutDevicesAreNoticed) {
  ProgramBuilder b({{"data", 2, false}});
  b.stages(1);
  auto executor = Executor::create(b.program, {});
  ASSERT_FALSE(bool(executor));
  EXPECT_EQ(failureOf(executor.takeError(), ExitCode::Internal),
            "0 devices and 0 communicators for 2 ranks");
}

} // namespace
