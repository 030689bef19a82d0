//===- AnnounceTest.cpp - Requests that wait for their turn ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ExecutorTestSupport.h"

#include <thread>

using namespace ax;
using namespace ax::rt;

namespace {

/// A program of two ranks that changes a state: y = 2 s + 1, which s is then.
class AnnounceTest : public ::testing::Test {
protected:
  AnnounceTest() {
    ProgramBuilder b({{"data", 2, false}});
    sharding::Layout layout = b.split({8}, {b.over("data")});
    b.stages(1);
    int32_t state = b.state("s", countingTensor({8}), layout);
    b.program->states.front().isMutable = true;
    // Programs have one input at least in these tests: it is only read.
    int32_t in = b.input("x", {8}, layout), out = b.output("y", {8}, layout);
    int32_t x = b.buffer(0, Space::Input, in, 16),
            s = b.buffer(0, Space::State, state, 16),
            between = b.buffer(0, Space::Arena, 0, 16),
            y = b.buffer(0, Space::Output, out, 16);
    b.kernel(0, "double", doublePlusOne, {s, between}, 4);
    b.kernel(0, "copy", copy, {between, s}, 4);
    b.kernel(0, "add", add, {x, s, y}, 4);
    ExecutorOptions options;
    options.maxInFlight = 2;
    executor = create(b, options);
  }
  static void copy(void *const *buffers, const int64_t *, int64_t begin,
                   int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      static_cast<float *>(buffers[1])[i] =
          static_cast<const float *>(buffers[0])[i];
  }
  static void add(void *const *buffers, const int64_t *, int64_t begin,
                  int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      static_cast<float *>(buffers[2])[i] =
          static_cast<const float *>(buffers[0])[i] +
          static_cast<const float *>(buffers[1])[i];
  }

  std::unique_ptr<Request> request(double x) {
    auto made = llvm::cantFail(executor->createRequest());
    made->inputs = {countingTensor({8}, x)};
    return made;
  }
  double state() const {
    return llvm::cantFail(executor->readState(0)).getDouble(0);
  }
  double finish(Request &request) {
    llvm::cantFail(executor->wait(request));
    return request.outputs.front().getDouble(0);
  }
  static std::string internal(llvm::Error error) {
    return failureOf(std::move(error), ExitCode::Internal);
  }

  std::unique_ptr<Executor> executor;
};

TEST_F(AnnounceTest, NothingChangesBeforeTheRequestIsSubmitted) {
  ASSERT_TRUE(executor);
  double wanted = 0;
  auto now = request(0);
  llvm::cantFail(executor->announce(*now));
  for (int step = 1; step < 20; ++step) {
    auto next = request(step);
    llvm::cantFail(executor->announce(*next));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(state(), wanted);
    EXPECT_EQ(internal(executor->wait(*now)),
              "the request was never submitted");
    llvm::cantFail(executor->submit(*now));
    wanted = 2 * wanted + 1;
    EXPECT_EQ(finish(*now), wanted + step - 1);
    EXPECT_EQ(state(), wanted);
    now = std::move(next);
  }
}

TEST_F(AnnounceTest, RequestsMayBeUsedAgain) {
  ASSERT_TRUE(executor);
  double wanted = 0;
  auto first = request(0), second = request(1);
  for (int round = 0; round < 10; ++round) {
    llvm::cantFail(executor->announce(*first));
    llvm::cantFail(executor->announce(*second));
    for (Request *each : {first.get(), second.get()}) {
      llvm::cantFail(executor->submit(*each));
      wanted = 2 * wanted + 1;
      EXPECT_EQ(finish(*each), wanted + (each == second.get()));
    }
  }
}

TEST_F(AnnounceTest, RequestsComeInTheOrderOfTheirAnnouncement) {
  ASSERT_TRUE(executor);
  auto first = request(0), second = request(0), third = request(0);
  llvm::cantFail(executor->announce(*first));
  const char *wanted = "a request was announced before this one, and is not "
                       "submitted";
  EXPECT_EQ(internal(executor->submit(*third)), wanted);
  llvm::cantFail(executor->announce(*second));
  EXPECT_EQ(internal(executor->submit(*second)), wanted);
  EXPECT_EQ(internal(executor->announce(*third)),
            "2 requests are announced, and none is submitted");
  llvm::cantFail(executor->submit(*first));
  EXPECT_EQ(finish(*first), 1);
  llvm::cantFail(executor->submit(*second));
  EXPECT_EQ(finish(*second), 3);
  EXPECT_EQ(state(), 3);
}

TEST_F(AnnounceTest, ExecutorsMayEndBeforeTheRequestIsSubmitted) {
  ASSERT_TRUE(executor);
  auto first = request(0), second = request(0);
  llvm::cantFail(executor->announce(*first));
  llvm::cantFail(executor->announce(*second));
  llvm::cantFail(executor->submit(*first));
  finish(*first);
  // The second one's inputs may be on their way.
  executor.reset();
}

} // namespace
