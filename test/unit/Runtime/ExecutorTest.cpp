//===- ExecutorTest.cpp - Programs on ranks -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ExecutorTestSupport.h"
#include "StepProgram.h"

#include "ax/Runtime/Npy.h"
#include "ax/Support/AtomicFile.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <filesystem>

using namespace ax;
using namespace ax::rt;

namespace {

void expectDoubled(Executor &executor, const Shape &shape, double start = 0) {
  HostTensor x = countingTensor(shape, start);
  auto outputs = executor.run({x});
  ASSERT_TRUE(bool(outputs)) << llvm::toString(outputs.takeError());
  ASSERT_EQ(outputs->front().getShape(), shape);
  for (int64_t i = 0; i < x.numElements(); ++i)
    ASSERT_EQ(outputs->front().getDouble(i), 2 * x.getDouble(i) + 1);
}

TEST(ExecutorTest, OneRank) {
  ProgramBuilder b({});
  addMap(b, {3, 5}, {});
  auto executor = create(b);
  ASSERT_TRUE(executor);
  expectDoubled(*executor, {3, 5});
  expectDoubled(*executor, {3, 5}, 7);
}

// Every way to split, even or not, in space and in time.
TEST(ExecutorTest, InputsAndOutputsArePutTogether) {
  for (int64_t size : {1, 2, 5, 6, 7})
    for (int threads : {1, 3}) {
      std::vector<sharding::Axis> axes{
          {"data", 2, false}, {"col", 3, false}, {"micro", 2, true}};
      for (const auto &split : waysToSplit(axes)) {
        ProgramBuilder b(axes);
        Shape shape{size, size + 1};
        addMap(b, shape, split);
        auto executor = create(b, {}, {threads});
        ASSERT_TRUE(executor);
        expectDoubled(*executor, shape);
      }
    }
}

TEST(ExecutorTest, UnalignedInputsAreCopied) {
  ProgramBuilder b({});
  addMap(b, {4}, {});
  auto executor = create(b);
  ASSERT_TRUE(executor);
  auto storage = std::make_shared<std::vector<float>>(32, 1.0f);
  HostTensor x =
      HostTensor::borrow(DType::F32, {4}, storage->data() + 1, storage);
  auto outputs = executor->run({x});
  ASSERT_TRUE(bool(outputs));
  EXPECT_EQ(outputs->front().getDouble(3), 3);
}

void addIndex(void *const *buffers, const int64_t *scalars, int64_t begin,
              int64_t end) {
  for (int64_t i = begin; i < end; ++i)
    static_cast<float *>(buffers[0])[i] =
        static_cast<float>(scalars[0] * 1000 + scalars[1]);
}

TEST(ExecutorTest, ScalarsKnowRankAndMicroBatch) {
  ProgramBuilder b({{"data", 2, false}, {"col", 2, false}, {"micro", 3, true}});
  sharding::Layout layout =
      b.split({3, 4}, {b.over("micro"), {b.over("data")[0], b.over("col")[0]}});
  b.stages(1);
  int32_t out = b.buffer(0, Space::Output, b.output("y", {3, 4}, layout), 4);
  Scalar rank{0, 1, {b.over("data")[0], b.over("col")[0]}};
  Scalar micro{100, 10, b.over("micro")};
  b.kernel(0, "index", addIndex, {out}, 1, {micro, rank});
  auto executor = create(b);
  ASSERT_TRUE(executor);
  auto outputs = executor->run({});
  ASSERT_TRUE(bool(outputs));
  for (int64_t m = 0; m < 3; ++m)
    for (int64_t r = 0; r < 4; ++r)
      EXPECT_EQ(outputs->front().getDouble(m * 4 + r),
                (100 + 10 * m) * 1000 + r);
}

/// y = x W + b with k or n split; W in a file.
class LinearTest : public ::testing::Test {
protected:
  void SetUp() override {
    char pattern[] = "/tmp/axexecXXXXXX";
    folder = mkdtemp(pattern);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  static constexpr int64_t m = 4, k = 6, n = 10;
  HostTensor weights = countingTensor({k, n}, 1);

  ProgramBuilder makeProgram(int64_t ranks, bool splitK, int64_t fileOffset) {
    std::string padding(static_cast<size_t>(fileOffset), '\0');
    std::string bytes(reinterpret_cast<const char *>(weights.data()),
                      static_cast<size_t>(weights.numBytes()));
    llvm::cantFail(writeFileAtomically(folder + "/weights.bin",
                                       llvm::StringRef(padding + bytes)));
    ProgramBuilder b({{"col", ranks, false}});
    sharding::SubAxes col = b.over("col"), none;
    sharding::Layout xLayout = b.split({m, k}, {none, splitK ? col : none});
    sharding::Layout wLayout =
        splitK ? b.split({k, n}, {col}) : b.split({k, n}, {none, col});
    sharding::Layout yLayout = b.split({m, n}, {none, splitK ? none : col});
    State state;
    state.name = "w";
    state.shape = {k, n};
    state.layout = wLayout;
    state.file = "weights.bin";
    state.offset = fileOffset;
    b.program->states.push_back(state);
    b.stages(1);
    MatmulDesc desc;
    desc.a = TensorDesc::dense(DType::F32, xLayout.localShape());
    desc.b = TensorDesc::dense(DType::F32, wLayout.localShape());
    desc.c = TensorDesc::dense(DType::F32, yLayout.localShape());
    desc.constantB = true;
    int32_t x = b.buffer(0, Space::Input, b.input("x", {m, k}, xLayout),
                         desc.a.spanBytes());
    int32_t w = b.buffer(0, Space::State, 0, desc.b.spanBytes());
    int32_t y = b.buffer(0, Space::Output, b.output("y", {m, n}, yLayout),
                         desc.c.spanBytes());
    int32_t product = b.buffer(0, Space::Arena, 0, desc.c.spanBytes());
    LibraryCommand matmul;
    matmul.desc = desc;
    matmul.arguments = {{x, 0}, {w, 0}, {splitK ? product : y, 0}};
    b.add(0, matmul, "linear");
    if (splitK)
      b.allReduce(0, b.group(0, "col"), product, y, {m, n});
    return b;
  }

  void check(Executor &executor) {
    HostTensor x = countingTensor({m, k}, -3);
    auto outputs = executor.run({x});
    ASSERT_TRUE(bool(outputs)) << llvm::toString(outputs.takeError());
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l)
          sum += x.getDouble(i * k + l) * weights.getDouble(l * n + j);
        EXPECT_EQ(outputs->front().getDouble(i * n + j), sum);
      }
  }
  std::string folder;
};

TEST_F(LinearTest, ColumnsAndRows) {
  for (int64_t ranks : {1, 2, 3, 4})
    for (bool splitK : {false, true})
      for (int64_t offset : {0, 4, 64, 3}) {
        ProgramBuilder b = makeProgram(ranks, splitK, offset);
        ExecutorOptions options;
        options.dataFolder = folder;
        auto executor = create(b, options);
        ASSERT_TRUE(executor);
        check(*executor);
      }
}

TEST_F(LinearTest, MissingAndShortFilesAreErrors) {
  ProgramBuilder b = makeProgram(2, true, 0);
  ExecutorOptions options;
  options.dataFolder = folder;
  b.program->states[0].offset = 8;
  auto executor = createExecutor(b.program, options);
  ASSERT_FALSE(bool(executor));
  failureOf(executor.takeError(), ExitCode::BadModel);
  b.program->states[0].file = "nowhere.bin";
  executor = createExecutor(b.program, options);
  ASSERT_FALSE(bool(executor));
  EXPECT_NE(failureOf(executor.takeError(), ExitCode::InputOutput)
                .find("nowhere.bin"),
            std::string::npos);
  std::filesystem::create_symlink("weights.bin", folder + "/link.bin");
  for (const char *outside : {"link.bin", "../weights.bin"}) {
    b.program->states[0].file = outside;
    executor = createExecutor(b.program, options);
    ASSERT_FALSE(bool(executor));
    EXPECT_NE(failureOf(executor.takeError(), ExitCode::BadPlan)
                  .find("it must be a file inside the model's folder"),
              std::string::npos);
  }
}

TEST(ExecutorTest, PipelinesWithRequestsInFlight) {
  for (int32_t stages : {2, 4})
    for (int64_t microBatches : {1, 3})
      for (int32_t slots : {1, 2})
        for (int64_t ranksPerStage : {1, 2}) {
          ProgramBuilder b =
              makePipeline(stages, microBatches, slots, ranksPerStage);
          ExecutorOptions options;
          options.maxInFlight = 3;
          auto executor = create(b, options);
          ASSERT_TRUE(executor);
          std::vector<std::unique_ptr<Request>> requests;
          for (int i = 0; i < 20; ++i) {
            requests.push_back(llvm::cantFail(executor->createRequest()));
            requests.back()->inputs = {
                countingTensor(b.program->inputs[0].shape, i * 100)};
            llvm::cantFail(executor->submit(*requests.back()));
          }
          for (int i = 0; i < 20; ++i) {
            llvm::cantFail(executor->wait(*requests[i]));
            for (int64_t e = 0; e < requests[i]->inputs[0].numElements(); ++e) {
              double want = requests[i]->inputs[0].getDouble(e);
              for (int32_t s = 0; s < stages; ++s)
                want = 2 * want + 1;
              ASSERT_EQ(requests[i]->outputs[0].getDouble(e), want);
            }
          }
        }
}

/// Where the last stage of a pipeline has found its values.
std::vector<const void *> places;

void keepPlace(void *const *buffers, const int64_t *scalars, int64_t begin,
               int64_t end) {
  if (begin == 0)
    places.push_back(buffers[0]);
  doublePlusOne(buffers, scalars, begin, end);
}

// Each step, or each second one, has all at the same addresses; and a step of
// one micro-batch has another slot than the one before, which it may overtake.
TEST(ExecutorTest, ReceivedValuesHaveSlotsInTurns) {
  for (int32_t microBatches : {1, 2, 3, 4}) {
    ProgramBuilder b = makePipeline(2, microBatches, 2);
    b.program->kernels.back() = makeKernel("keep place", keepPlace);
    Kernel &kernel = b.program->kernels.back();
    const Kernel &first = b.program->kernels.front();
    kernel.arguments = first.arguments;
    kernel.iterations = first.iterations;
    auto executor = create(b);
    ASSERT_TRUE(executor);
    places.clear();
    for (int i = 0; i < 6; ++i)
      llvm::cantFail(executor->run({countingTensor(b.program->inputs[0].shape)})
                         .takeError());
    auto period = static_cast<size_t>(microBatches + microBatches % 2);
    ASSERT_EQ(places.size(), static_cast<size_t>(6 * microBatches));
    for (size_t i = 0; i + period < places.size(); ++i)
      EXPECT_EQ(places[i], places[i + period]) << i;
    for (size_t i = 0; i + 1 < places.size(); ++i)
      EXPECT_NE(places[i], places[i + 1]) << i;
  }
}

/// One list leaves a value in a slot for each micro-batch, another takes it
/// when more have begun, a third runs once a step.
TEST(ExecutorTest, ListsKeepValuesForEachOther) {
  ProgramBuilder b({{"data", 1, false}, {"micro", 3, true}});
  Shape shape{6};
  sharding::Layout layout = b.split(shape, {b.over("micro")});
  b.stages(1);
  int32_t x = b.input("x", shape, layout), y = b.output("y", shape, layout),
          last = b.output("last", {2}, b.split({2}, {}));
  StageProgram &stage = b.stage();
  stage.kept.push_back({"value", 2 * 4, 2});
  stage.kept.push_back({"sum", 2 * 4, 1});
  int32_t in = b.buffer(0, Space::Input, x, 8),
          kept = b.buffer(0, Space::Kept, 0, 8);
  b.kernel(0, "double", doublePlusOne, {in, kept}, 2);
  stage.lists.push_back({"backward", {}, false});
  int32_t taken = b.buffer(0, Space::Kept, 0, 8),
          sum = b.buffer(0, Space::Kept, 1, 8),
          out = b.buffer(0, Space::Output, y, 8);
  b.kernel(0, "double", doublePlusOne, {taken, out}, 2);
  b.kernel(0, "double", doublePlusOne, {taken, sum}, 2);
  stage.lists.push_back({"update", {}, true});
  int32_t whole = b.buffer(0, Space::Output, last, 8);
  b.kernel(0, "double", doublePlusOne, {sum, whole}, 2);
  stage.schedule = {{0, 0}, {1, 0}, {0, 1}, {2, 0}, {1, 1}, {2, 1}, {0, 2}};
  auto executor = create(b);
  ASSERT_TRUE(executor);
  HostTensor input = countingTensor(shape, 10);
  for (int i = 0; i < 3; ++i) {
    auto outputs = llvm::cantFail(executor->run({input}));
    for (int64_t e = 0; e < 6; ++e)
      EXPECT_EQ(outputs[0].getDouble(e), 4 * input.getDouble(e) + 3) << e;
    for (int64_t e = 0; e < 2; ++e)
      EXPECT_EQ(outputs[1].getDouble(e), 8 * input.getDouble(4 + e) + 7) << e;
  }
}

/// What is made of an input tells which step made it.
TEST(ExecutorTest, WhatIsDoneOnceStays) {
  ProgramBuilder b({{"data", 1, false}, {"micro", 2, true}});
  Shape shape{4};
  sharding::Layout layout = b.split(shape, {b.over("micro")});
  b.stages(1);
  int32_t in = b.buffer(0, Space::Input, b.input("x", shape, layout), 8),
          out = b.buffer(0, Space::Output, b.output("y", shape, layout), 8);
  b.stage().kept.push_back({"made once", 8, 1, true});
  int32_t kept = b.buffer(0, Space::Kept, 0, 8);
  b.kernel(0, "once", doublePlusOne, {in, kept}, 2);
  b.stage().lists[0].commands.back().microBatches = MicroBatches::Once;
  b.kernel(0, "always", doublePlusOne, {kept, out}, 2);
  auto executor = create(b);
  ASSERT_TRUE(executor);
  HostTensor first = countingTensor(shape, 10);
  for (int begin : {10, 20, 30}) {
    auto outputs =
        llvm::cantFail(executor->run({countingTensor(shape, begin)}));
    for (int64_t e = 0; e < 4; ++e)
      EXPECT_EQ(outputs[0].getDouble(e), 4 * first.getDouble(e % 2) + 3) << e;
  }
}

/// A state that only such a command reads is not there any more behind it.
TEST(ExecutorTest, WhatIsReadOnceIsDropped) {
  for (bool isReadLater : {false, true}) {
    ProgramBuilder b({{"data", 1, false}});
    Shape shape{4};
    sharding::Layout layout = b.split(shape, {});
    b.stages(1);
    int32_t state = b.state("w", countingTensor(shape, 5), layout);
    int32_t w = b.buffer(0, Space::State, state, 16),
            out = b.buffer(0, Space::Output, b.output("y", shape, layout), 16);
    b.stage().kept.push_back({"made once", 16, 1, true});
    int32_t kept = b.buffer(0, Space::Kept, 0, 16);
    b.kernel(0, "once", doublePlusOne, {w, kept}, 4);
    b.stage().lists[0].commands.back().microBatches = MicroBatches::Once;
    b.kernel(0, "always", doublePlusOne, {isReadLater ? w : kept, out}, 4);
    auto executor = create(b);
    ASSERT_TRUE(executor);
    EXPECT_EQ(executor->getMemory()[0].stateBytes, 16);
    for (int i = 0; i < 3; ++i) {
      auto outputs = llvm::cantFail(executor->run({}));
      for (int64_t e = 0; e < 4; ++e)
        EXPECT_EQ(outputs[0].getDouble(e),
                  isReadLater ? 2 * (5 + e) + 1 : 4 * (5 + e) + 3);
      EXPECT_EQ(executor->getMemory()[0].stateBytes, isReadLater ? 16 : 0);
    }
  }
}

TEST(ExecutorTest, ARequestCanBeUsedAgain) {
  ProgramBuilder b = makePipeline(2, 2, 2);
  auto executor = create(b);
  ASSERT_TRUE(executor);
  auto request = llvm::cantFail(executor->createRequest());
  for (int i = 0; i < 10; ++i) {
    request->inputs = {countingTensor(b.program->inputs[0].shape, i)};
    llvm::cantFail(executor->submit(*request));
    llvm::cantFail(executor->wait(*request));
    EXPECT_EQ(request->outputs[0].getDouble(1), 4 * (i + 1) + 3);
    EXPECT_GT(request->duration.count(), 0);
    // Taken away, or shared: the next run must not write to it.
    std::vector<HostTensor> taken = std::move(request->outputs);
    if (i % 2)
      request->outputs = taken;
    else
      request->outputs.resize(1);
  }
}

TEST(ExecutorTest, StartedCollectivesAreWaitedFor) {
  ProgramBuilder b({{"col", 3, false}});
  sharding::Layout layout = b.split({8}, {});
  b.stages(1);
  int32_t in = b.buffer(0, Space::Input, b.input("x", {8}, layout), 32);
  int32_t out = b.buffer(0, Space::Output, b.output("y", {8}, layout), 32);
  int32_t sums[2] = {b.buffer(0, Space::Arena, 0, 32),
                     b.buffer(0, Space::Arena, 0, 32)};
  int32_t group = b.group(0, "col");
  b.allReduce(0, group, in, sums[0], {8}, 1);
  b.allReduce(0, group, in, sums[1], {8}, 0);
  b.add(0, WaitCommand{1}, "wait 1");
  b.add(0, WaitCommand{0}, "wait 0");
  CopyCommand copy;
  copy.sizes = {4};
  copy.sourceStrides = copy.destinationStrides = {1};
  for (int32_t i = 0; i < 2; ++i) {
    copy.source = {sums[i], i * 16};
    copy.destination = {out, i * 16};
    b.add(0, copy, "copy");
  }
  auto executor = create(b);
  ASSERT_TRUE(executor);
  auto outputs = executor->run({countingTensor({8})});
  ASSERT_TRUE(bool(outputs));
  for (int64_t i = 0; i < 8; ++i)
    EXPECT_EQ(outputs->front().getDouble(i), 3.0 * static_cast<double>(i));
}

TEST(ExecutorTest, WrongInputsAreErrors) {
  ProgramBuilder b({});
  addMap(b, {2, 2}, {});
  auto executor = create(b);
  ASSERT_TRUE(executor);
  auto none = executor->run({});
  EXPECT_EQ(failureOf(none.takeError(), ExitCode::BadInput),
            "0 inputs given, 1 needed");
  auto misshaped = executor->run({HostTensor(DType::F16, {2, 3})});
  std::string message = failureOf(misshaped.takeError(), ExitCode::BadInput);
  for (const char *part : {"'x'", "2x3xf16", "2x2xf32"})
    EXPECT_NE(message.find(part), std::string::npos) << message;
  expectDoubled(*executor, {2, 2});
}

TEST(ExecutorTest, RequestsMayGoBeforeTheirEnd) {
  ProgramBuilder b = makePipeline(2, 2, 2);
  ExecutorOptions options;
  options.maxInFlight = 2;
  auto executor = create(b, options);
  ASSERT_TRUE(executor);
  for (int i = 0; i < 10; ++i) {
    auto request = llvm::cantFail(executor->createRequest());
    std::string message =
        failureOf(executor->wait(*request), ExitCode::Internal);
    EXPECT_NE(message.find("the request was never submitted"),
              std::string::npos);
    request->inputs = {countingTensor(b.program->inputs[0].shape, i)};
    llvm::cantFail(executor->submit(*request));
  }
  auto last = llvm::cantFail(executor->createRequest());
  last->inputs = {countingTensor(b.program->inputs[0].shape)};
  llvm::cantFail(executor->submit(*last));
  executor.reset();
  last.reset();
}

TEST(ExecutorTest, TracesNameEveryCommand) {
  ProgramBuilder b = makePipeline(2, 2, 1);
  ExecutorOptions options;
  options.trace = true;
  auto executor = create(b, options);
  ASSERT_TRUE(executor);
  for (int i = 0; i < 3; ++i)
    llvm::consumeError(
        executor->run({countingTensor(b.program->inputs[0].shape)})
            .takeError());
  std::vector<CommandTime> times = executor->getCommandTimes();
  ASSERT_EQ(times.size(), 4u);
  EXPECT_EQ(times[0].name, "double");
  EXPECT_EQ(times[0].what, "kernel double");
  EXPECT_EQ(times[1].what, "send value0 to stage 1");
  EXPECT_EQ(times[3].stage, 1);
  for (const CommandTime &time : times) {
    EXPECT_EQ(time.executions, 6);
    EXPECT_GT(time.total.count(), 0);
  }
  std::string path = "/tmp/axtrace" + std::to_string(getpid()) + ".json";
  ASSERT_FALSE(bool(executor->writeTrace(path)));
  EXPECT_GT(std::filesystem::file_size(path), 1000u);
  std::filesystem::remove(path);
  // The stages of two micro-batches wait for one another, at least at the ends.
  auto bubble = executor->getBubble();
  ASSERT_TRUE(bubble);
  EXPECT_GE(*bubble, 0.25);
  EXPECT_LT(*bubble, 1);
  executor->clearTrace();
  EXPECT_EQ(executor->getCommandTimes()[0].executions, 0);
  EXPECT_FALSE(executor->getBubble());
}

TEST(TimeSummaryTest, Quantiles) {
  std::vector<std::chrono::nanoseconds> times;
  for (int i = 100; i >= 0; --i)
    times.emplace_back(i);
  TimeSummary summary = summarise(times);
  EXPECT_EQ(summary.least.count(), 0);
  EXPECT_EQ(summary.median.count(), 50);
  EXPECT_EQ(summary.p90.count(), 90);
  EXPECT_EQ(summary.p99.count(), 99);
  EXPECT_EQ(summary.mean.count(), 50);
}

} // namespace
