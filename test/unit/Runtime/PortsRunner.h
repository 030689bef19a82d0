//===- PortsRunner.h - Steps of nothing but inputs and outputs --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_PORTSRUNNER_H
#define AX_TEST_PORTSRUNNER_H

#include "DeviceSuite.h"
#include "ListPorts.h"

#include "ax/Runtime/DeviceAccess.h"
#include "ax/Runtime/LocalCommunicator.h"

namespace ax::rt {

constexpr int64_t portBytes = 192;

/// A part for each micro-batch, aligned as kernels need them.
struct TestParts {
  explicit TestParts(int32_t count) : values(static_cast<size_t>(count)) {}
  struct alignas(bufferAlignment) Part {
    char bytes[portBytes];
  };
  std::vector<Part> values;

  void fill(uint32_t seed) {
    for (Part &part : values)
      std::memcpy(part.bytes, randomBytes(portBytes, seed++).data(), portBytes);
  }
  bool operator==(const TestParts &other) const {
    return std::memcmp(values.data(), other.values.data(),
                       values.size() * sizeof(Part)) == 0;
  }
};

template <typename Port>
class TestPort : public Port {
public:
  TestPort(TestParts &parts, bool isDirect)
      : parts(parts), isDirect(isDirect) {}
  int64_t getBytes() const override { return portBytes; }
  bool isInPlace() const override { return isDirect; }
  void *find(int32_t microBatch) const override {
    return parts.values[static_cast<size_t>(microBatch)].bytes;
  }

protected:
  TestParts &parts;
  bool isDirect;
};

class TestInput : public TestPort<BoundInput> {
public:
  using TestPort::TestPort;
  void pack(int32_t microBatch, void *part) const override {
    std::memcpy(part, find(microBatch), portBytes);
  }
};

class TestOutput : public TestPort<BoundOutput> {
public:
  using TestPort::TestPort;
  bool isOwn(int32_t) const override { return true; }
  void unpack(int32_t microBatch, const void *part) const override {
    std::memcpy(find(microBatch), part, portBytes);
  }
};

/// A list that copies its input to its output, once for each micro-batch.
struct PortsRunner {
  PortsRunner(TestRank &rank, int32_t microBatches, bool isDirect)
      : rank(rank), context(program, 0, rank.device, *communicators.front()),
        streams(llvm::cantFail(RankStreams::create(rank.device))),
        ports(context, streams, microBatches), microBatches(microBatches),
        inputs(microBatches), outputs(microBatches) {
    llvm::cantFail(
        ports.addInput(0, std::make_unique<TestInput>(inputs, isDirect)));
    llvm::cantFail(
        ports.addOutput(1, std::make_unique<TestOutput>(outputs, isDirect)));
  }

  // What was staged for a step that never came may be on its way.
  ~PortsRunner() { llvm::cantFail(streams.upload->synchronize()); }

  Turn turnOf(uint64_t step, int32_t microBatch) const {
    return {step, microBatches, microBatch};
  }
  void stage(uint64_t step) { llvm::cantFail(ports.stage(turnOf(step, 0), 0)); }
  void open(uint64_t step, int32_t microBatch) {
    llvm::cantFail(ports.open(turnOf(step, microBatch), microBatch,
                              [this](int32_t buffer, DeviceAddress address) {
                                addresses[buffer] = address;
                              }));
  }
  void compute(uint64_t step, int32_t microBatch) {
    llvm::cantFail(
        rank.copy(*streams.compute, addresses[0], addresses[1], portBytes));
    llvm::cantFail(ports.close(turnOf(step, microBatch), microBatch));
  }
  void start(uint64_t step) {
    for (int32_t m = 0; m < microBatches; ++m) {
      open(step, m);
      compute(step, m);
    }
    llvm::cantFail(ports.awaitOutputs());
  }
  void finish() {
    llvm::cantFail(streams.compute->synchronize());
    ports.collect();
  }

  TestRank &rank;
  Program program;
  std::vector<std::unique_ptr<Communicator>> communicators =
      createLocalCommunicators(1);
  RankContext context;
  RankStreams streams;
  ListPorts ports;
  int32_t microBatches;
  TestParts inputs, outputs;
  DeviceAddress addresses[2];
};

} // namespace ax::rt

#endif // AX_TEST_PORTSRUNNER_H
