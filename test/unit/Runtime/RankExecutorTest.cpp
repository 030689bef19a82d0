//===- RankExecutorTest.cpp - Ranks that share nothing --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// As in processes of their own: each has its part of everything, and reaches
// the other one by its communicator alone.
//
//===----------------------------------------------------------------------===//
#include "RankExecutor.h"
#include "ProgramBuilder.h"

#include "ax/Runtime/CpuDevice.h"
#include "ax/Runtime/DeviceAccess.h"
#include "ax/Runtime/LocalCommunicator.h"

#include "gtest/gtest.h"

#include <array>
#include <thread>

using namespace ax;
using namespace ax::rt;

namespace {

constexpr size_t numRanks = 2, partSize = 3;

struct alignas(64) Values {
  std::array<float, partSize> values{};
};

/// The rank's own parts, one for each micro-batch.
template <typename Port>
class OwnPort : public Port {
public:
  explicit OwnPort(std::vector<Values> &parts) : parts(parts) {}
  int64_t getBytes() const override { return sizeof(float) * partSize; }
  bool isInPlace() const override { return true; }
  void *find(int32_t microBatch) const override {
    return parts[static_cast<size_t>(microBatch)].values.data();
  }

private:
  std::vector<Values> &parts;
};

// What is in place is not copied.
class OwnInput : public OwnPort<BoundInput> {
public:
  using OwnPort::OwnPort;
  void pack(int32_t, void *) const override { ADD_FAILURE(); }
};

class OwnOutput : public OwnPort<BoundOutput> {
public:
  using OwnPort::OwnPort;
  bool isOwn(int32_t) const override { return true; }
  void unpack(int32_t, const void *) const override { ADD_FAILURE(); }
};

class OwnPorts : public RankPorts {
public:
  std::unique_ptr<BoundInput> bindInput(int32_t) override {
    return std::make_unique<OwnInput>(inputs);
  }
  std::unique_ptr<BoundOutput> bindOutput(int32_t) override {
    return std::make_unique<OwnOutput>(outputs);
  }
  std::vector<Values> inputs, outputs;
};

/// y = the sum of all ranks' 2 x + 1.
std::shared_ptr<const Program> sumProgram() {
  ProgramBuilder b({{"data", numRanks, false}, {"micro", 2, true}});
  Shape shape{4 * partSize};
  sharding::Layout layout =
      b.split(shape, {{b.over("micro")[0], b.over("data")[0]}});
  int64_t bytes = partSize * sizeof(float);
  b.stages(1);
  int32_t in = b.buffer(0, Space::Input, b.input("x", shape, layout), bytes);
  int32_t doubled = b.buffer(0, Space::Arena, 0, bytes);
  int32_t out = b.buffer(
      0, Space::Output,
      b.output("y", {2 * partSize}, b.split({2 * partSize}, {b.over("micro")})),
      bytes);
  b.kernel(0, "double", doublePlusOne, {in, doubled}, partSize);
  b.allReduce(0, b.group(0, "data"), doubled, out, {partSize});
  return b.program;
}

TEST(RankExecutorTest, RanksThatShareNothing) {
  auto communicators = createLocalCommunicators(numRanks);
  std::vector<std::thread> threads;
  std::array<OwnPorts, numRanks> ports;
  std::array<std::string, numRanks> failures;
  for (size_t rank = 0; rank < numRanks; ++rank)
    threads.emplace_back([&, rank] {
      std::shared_ptr<const Program> program = sumProgram();
      OwnPorts &mine = ports[rank];
      mine.inputs.resize(2);
      mine.outputs.resize(2);
      for (size_t m = 0; m < 2; ++m)
        mine.inputs[m].values.fill(static_cast<float>(10 * rank + m));
      auto device = std::move(createCpuDevices(1)[0]);
      StateStore states(*program, llvm::cantFail(openHostStates(*program, "")));
      RankExecutor executor(RankContext(*program, static_cast<int32_t>(rank),
                                        *device, *communicators[rank]),
                            mine, states, nullptr);
      llvm::Error error = executor.prepare();
      for (int i = 0; i < 3 && !error; ++i) {
        error = executor.start();
        if (!error)
          error = executor.finish();
      }
      failures[rank] = llvm::toString(std::move(error));
    });
  for (std::thread &thread : threads)
    thread.join();
  for (size_t rank = 0; rank < numRanks; ++rank) {
    EXPECT_EQ(failures[rank], "");
    for (size_t m = 0; m < 2; ++m)
      for (float value : ports[rank].outputs[m].values)
        EXPECT_EQ(value, static_cast<float>(2 * m + 1 + 2 * (10 + m) + 1));
  }
}

} // namespace
