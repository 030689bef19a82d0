//===- AllocationTest.cpp - The steady state allocates nothing ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../CountAllocations.h"
#include "StepProgram.h"
#include "ThreadWorlds.h"

#include "llvm/Support/FileSystem.h"

#include "gtest/gtest.h"

#ifdef AX_COUNTS_ALLOCATIONS

using namespace ax;
using namespace ax::rt;

namespace {

// Two stages of two ranks: kernels, collectives of both sizes, copies, sends.
void expectNoAllocations(const ExecutorOptions &options) {
  ProgramBuilder b({{"pipe", 2, false}, {"col", 2, false}, {"micro", 2, true}});
  const int64_t columns = 9000;
  Shape shape{4, columns};
  sharding::Layout layout = b.split(shape, {b.over("micro"), {}});
  const int64_t bytes = 2 * columns * 4;
  b.stages(2);
  int32_t in = b.input("x", shape, layout), out = b.output("y", shape, layout);
  b.transfer(0, bytes, 2);
  int32_t x = b.buffer(0, Space::Input, in, bytes);
  int32_t a = b.buffer(0, Space::Arena, 0, bytes);
  int32_t c = b.buffer(0, Space::Arena, 0, bytes);
  b.kernel(0, "double", doublePlusOne, {x, a}, 2 * columns);
  int32_t group = b.group(0, "col");
  b.allReduce(0, group, a, c, {2, columns}, 0);
  b.add(0, WaitCommand{0}, "wait");
  b.allReduce(0, group, c, c, {8});
  b.add(0, SendCommand{0, {c, 0}}, "send");
  int32_t r = b.buffer(1, Space::Received, 0, bytes);
  int32_t y = b.buffer(1, Space::Output, out, bytes);
  b.add(1, RecvCommand{0}, "recv");
  CopyCommand copy;
  copy.source = {r, 0};
  copy.destination = {y, 0};
  copy.sizes = {columns, 2};
  copy.sourceStrides = copy.destinationStrides = {1, columns};
  b.add(1, copy, "copy");

  auto executor = llvm::cantFail(createExecutor(b.program, options));
  std::unique_ptr<Request> requests[2];
  for (std::unique_ptr<Request> &request : requests) {
    request = llvm::cantFail(executor->createRequest());
    request->inputs = {countingTensor(shape)};
  }
  auto runBoth = [&] {
    for (std::unique_ptr<Request> &request : requests)
      llvm::cantFail(executor->submit(*request));
    for (std::unique_ptr<Request> &request : requests)
      llvm::cantFail(executor->wait(*request));
  };
  runBoth();
  int64_t before = numAllocations;
  for (int i = 0; i < 20; ++i)
    runBoth();
  EXPECT_EQ(numAllocations, before);
  EXPECT_EQ(requests[1]->outputs[0].getDouble(9), 2 * (2 * 9 + 1));
  EXPECT_EQ(requests[1]->outputs[0].getDouble(1), 4 * (2 * 1 + 1));
}

TEST(AllocationTest, SteadyStateAllocatesNothing) { expectNoAllocations({}); }

TEST(AllocationTest, RecordsAllocateNothing) {
  llvm::SmallString<128> folder;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("ax-flight", folder));
  ExecutorOptions options;
  options.recorder = llvm::cantFail(FlightRecorder::create(folder.str().str()));
  expectNoAllocations(options);
  llvm::sys::fs::remove_directories(folder);
}

// Nor do several processes for what they hand over.
TEST(AllocationTest, ProcessesAllocateNothing) {
  for (bool isPipeline : {false, true}) {
    StepProgram step(isPipeline);
    ThreadWorlds job(step.numRanks());
    auto executors = takeAll(job.create(step.builder.program));
    std::vector<std::unique_ptr<Request>> requests;
    for (const auto &executor : executors) {
      requests.push_back(llvm::cantFail(executor->createRequest()));
      requests.back()->inputs = {step.makeInput()};
    }
    // One thread can submit to all before it waits.
    auto runAll = [&] {
      for (size_t i = 0; i < executors.size(); ++i)
        llvm::cantFail(executors[i]->submit(*requests[i]));
      for (size_t i = 0; i < executors.size(); ++i)
        llvm::cantFail(executors[i]->wait(*requests[i]));
    };
    runAll();
    int64_t before = numAllocations;
    for (int i = 0; i < 20; ++i)
      runAll();
    EXPECT_EQ(numAllocations, before);
  }
}

} // namespace

#endif
