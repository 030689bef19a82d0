//===- DeviceCommunicatorTest.cpp - Ranks that share a card ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Communicator `local` on memory of device cuda, whose streams do the work in
// any order that they may.
//
//===----------------------------------------------------------------------===//

#include "CommunicatorSuite.h"
#include "TestSimgpu.h"
#include "UploadedRanks.h"

#include "ax/Codegen/Kernel.h"
#include "ax/Dialect/Ax.h"
#include "ax/Interpreter/Elements.h"
#include "ax/Runtime/AllBackends.h"
#include "ax/Runtime/LocalCommunicator.h"

#include <cmath>
#include <mutex>
#include <random>
#include <thread>

using namespace ax;
using namespace ax::rt;

namespace {

using sharding::ReduceKind;

/// What reduces, as codegen gives it to collectives; null for what does not.
std::shared_ptr<const Kernel> findReduction(const CollectiveSpecs &specs,
                                            size_t members) {
  static std::mutex mutex;
  static mlir::MLIRContext context;
  static std::unique_ptr<codegen::KernelCompiler> compiler = [] {
    codegen::KernelOptions options;
    options.target = llvm::cantFail(Target::parse("sm_90+sim"));
    return llvm::cantFail(codegen::KernelCompiler::create(options));
  }();
  if (specs.empty() || !reduces(specs.front().kind))
    return nullptr;
  const CollectiveSpec &spec = specs.front();
  std::lock_guard<std::mutex> lock(mutex);
  codegen::Reduction reduction;
  reduction.kind = spec.reduce == ReduceKind::Sum   ? ReduceOpKind::sum
                   : spec.reduce == ReduceKind::Max ? ReduceOpKind::max
                                                    : ReduceOpKind::min;
  reduction.type = interpreter::toElementType(spec.dtype, &context);
  reduction.sources = members;
  reduction.destinations = spec.kind == CollectiveKind::AllReduce ? members : 1;
  return llvm::cantFail(compiler->compileReduction(reduction));
}

class CudaBackend : public CommunicatorBackend {
public:
  CudaBackend(const char *name, const char *order) : name(name), order(order) {}
  const char *getName() const override { return name; }
  void run(int32_t numRanks, std::chrono::milliseconds timeout,
           const std::function<void(Communicator &)> &body) override {
    startSimgpu({{"ORDER", order}});
    auto devices = llvm::cantFail(
        llvm::cantFail(allBackends().devices.find("cuda"))
            .create(std::vector<int32_t>(numRanks), DeviceOptions()));
    CommunicatorOptions options;
    options.timeout = timeout;
    for (std::unique_ptr<Device> &device : devices)
      options.devices.push_back(device.get());
    auto communicators = createLocalCommunicators(numRanks, options);
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < communicators.size(); ++rank)
      threads.emplace_back([&, rank] {
        devices[rank]->attachThread();
        DeviceCommunicator communicator(*communicators[rank], *devices[rank],
                                        findReduction);
        body(communicator);
        EXPECT_EQ(communicator.getNumOnHost(), 0);
      });
    for (std::thread &thread : threads)
      thread.join();
  }

private:
  const char *name, *order;
};

CudaBackend eager("Eager", "eager"), lazy("Lazy", "lazy"),
    random1("Random1", "random:1"), random2("Random2", "random:2"),
    random3("Random3", "random:3");

INSTANTIATE_TEST_SUITE_P(
    Cuda, CommunicatorSuite,
    ::testing::Values(static_cast<CommunicatorBackend *>(&eager), &lazy,
                      &random1, &random2, &random3),
    [](const auto &info) { return info.param->getName(); });

/// All-reduces random numbers on memory of the host, or of the device.
std::vector<HostTensor> reduceRandom(DType type, int32_t numRanks,
                                     ReduceKind kind, bool onDevice) {
  std::vector<HostTensor> results(static_cast<size_t>(numRanks));
  auto body = [&](Communicator &communicator) {
    auto rank = static_cast<size_t>(communicator.getRank());
    HostTensor source(type, {3, 173});
    std::mt19937 random(static_cast<uint32_t>(rank) + 1);
    std::normal_distribution<double> normal;
    for (int64_t i = 0; i < source.numElements(); ++i)
      source.setDouble(i, random() % 50  ? normal(random)
                          : random() % 2 ? NAN
                                         : -INFINITY);
    HostTensor result(type, {3, 173});
    auto operation =
        prepare(communicator, makeGroup(communicator, allRanks(communicator)),
                allReduce(type, {3, 173}, kind));
    llvm::cantFail(operation->run(source.data(), result.mutableData()));
    results[rank] = std::move(result);
  };
  if (onDevice) {
    random1.run(numRanks, std::chrono::seconds(60), body);
    return results;
  }
  auto communicators = createLocalCommunicators(numRanks);
  std::vector<std::thread> threads;
  for (auto &communicator : communicators)
    threads.emplace_back([&] { body(*communicator); });
  for (std::thread &thread : threads)
    thread.join();
  return results;
}

TEST(DeviceCommunicatorTest, ReducesAsTheHostDoes) {
  for (DType type : {DType::F32, DType::F64, DType::F16, DType::BF16})
    for (ReduceKind kind : {ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min})
      for (int32_t numRanks : {2, 3, 8}) {
        auto wanted = reduceRandom(type, numRanks, kind, false);
        auto got = reduceRandom(type, numRanks, kind, true);
        for (size_t rank = 0; rank < got.size(); ++rank)
          for (int64_t i = 0; i < got[rank].numElements(); ++i) {
            double want = wanted[rank].getDouble(i);
            double value = got[rank].getDouble(i);
            ASSERT_TRUE(value == want ||
                        (std::isnan(value) && std::isnan(want)))
                << toString(type) << " of " << numRanks << ", element " << i
                << ": " << value << " instead of " << want;
          }
      }
}

// Whoever sends and receives makes nothing: all is there when it is prepared.
TEST(DeviceCommunicatorTest, MessagesMakeNoEvents) {
  startSimgpu({});
  DeviceKind cuda = llvm::cantFail(allBackends().devices.find("cuda"));
  auto devices = llvm::cantFail(cuda.create({0, 0}, DeviceOptions()));
  CommunicatorOptions options;
  for (std::unique_ptr<Device> &device : devices)
    options.devices.push_back(device.get());
  auto ranks = createLocalCommunicators(2, options);
  auto send = llvm::cantFail(ranks[0]->prepareSendOnStream(1, 0, 8, "m"));
  auto stream = llvm::cantFail(devices[0]->createStream());
  auto other = llvm::cantFail(devices[1]->createStream());
  auto memory = llvm::cantFail(devices[0]->allocate(16));
  std::vector<std::unique_ptr<StreamOperation>> receives;
  for (int slot = 0; slot < 2; ++slot)
    receives.push_back(
        llvm::cantFail(ranks[1]->prepareReceiveOnStream(0, 0, 8, "m")));
  uint64_t before = simgpuCounted("cuEventCreate");
  for (auto &receive : receives)
    llvm::cantFail(
        receive->start(*other, {DeviceAddress(), memory->getAddress() + 8}));
  for (auto &receive : receives) {
    llvm::cantFail(
        send->start(*stream, {memory->getAddress(), DeviceAddress()}));
    llvm::cantFail(send->finish(*stream));
    llvm::cantFail(receive->finish(*other));
  }
  EXPECT_EQ(simgpuCounted("cuEventCreate"), before);
  llvm::cantFail(stream->synchronize());
  llvm::cantFail(other->synchronize());
}

} // namespace
