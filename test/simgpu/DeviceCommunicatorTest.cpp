//===- DeviceCommunicatorTest.cpp - Ranks that share a card ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Communicator `local` on memory of device cuda, whose streams do the work in
// any order that they may.
//
//===----------------------------------------------------------------------===//

#include "CommunicatorSuite.h"
#include "TestSimgpu.h"

#include "ax/Codegen/Kernel.h"
#include "ax/Dialect/Ax.h"
#include "ax/Interpreter/Elements.h"
#include "ax/Runtime/AllBackends.h"
#include "ax/Runtime/HostTransfer.h"
#include "ax/Runtime/LocalCommunicator.h"
#include "ax/Support/Error.h"

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

/// An operation on memory of a device, between uploads and downloads.
class UploadedOperation : public Operation {
public:
  UploadedOperation(Device &device, std::unique_ptr<StreamOperation> operation)
      : operation(std::move(operation)),
        stream(llvm::cantFail(device.createStream())),
        transfer(device, *stream, 1 << 16), device(device) {}
  /// What is still queued uses the memory.
  ~UploadedOperation() override { llvm::consumeError(stream->synchronize()); }

  void addTensor(int64_t sourceBytes, int64_t destinationBytes) {
    tensors.push_back({llvm::cantFail(device.allocate(sourceBytes)),
                       llvm::cantFail(device.allocate(destinationBytes)),
                       nullptr, false});
  }
  llvm::Error start(llvm::ArrayRef<const void *> sources,
                    llvm::ArrayRef<void *> destinations) override {
    std::vector<DeviceAddress> addresses;
    for (size_t i = 0; i < tensors.size(); ++i) {
      Tensor &tensor = tensors[i];
      if (int64_t bytes = tensor.source->getSize())
        if (llvm::Error error =
                transfer.upload(sources[i], tensor.source->getAddress(), bytes))
          return error;
      tensor.to = destinations.empty() ? nullptr : destinations[i];
      tensor.isInPlace = !sources.empty() && tensor.to == sources[i];
      addresses.push_back(tensor.source->getAddress());
    }
    for (Tensor &tensor : tensors)
      addresses.push_back(tensor.getResult().getAddress());
    return operation->start(*stream, addresses);
  }
  llvm::Error wait() override {
    if (llvm::Error error = operation->finish(*stream))
      return error;
    for (Tensor &tensor : tensors)
      if (int64_t bytes = tensor.getResult().getSize(); bytes && tensor.to)
        if (llvm::Error error = transfer.download(
                tensor.getResult().getAddress(), tensor.to, bytes))
          return error;
    return llvm::Error::success();
  }

private:
  struct Tensor {
    std::unique_ptr<DeviceMemory> source, destination;
    void *to = nullptr;
    bool isInPlace = false;
    DeviceMemory &getResult() { return isInPlace ? *source : *destination; }
  };

  std::unique_ptr<StreamOperation> operation;
  std::unique_ptr<Stream> stream;
  HostTransfer transfer;
  Device &device;
  std::vector<Tensor> tensors;
};

/// What another one does on memory of a device, for the host's.
class DeviceCommunicator : public Communicator {
public:
  DeviceCommunicator(Communicator &inner, Device &device)
      : inner(inner), device(device) {}

  int32_t getRank() const override { return inner.getRank(); }
  int32_t getSize() const override { return inner.getSize(); }
  llvm::Expected<std::shared_ptr<Group>>
  createGroup(llvm::ArrayRef<int32_t> ranks) override {
    return inner.createGroup(ranks);
  }
  llvm::Expected<std::unique_ptr<Operation>>
  prepare(const CollectiveSpecs &specs, const std::shared_ptr<Group> &group,
          const std::string &name) override {
    std::shared_ptr<const Kernel> reduction =
        findReduction(specs, static_cast<size_t>(group->getSize()));
    auto made =
        adapt(inner.prepareOnStream(specs, group, name, reduction.get()));
    if (made)
      for (const CollectiveSpec &spec : specs)
        (*made)->addTensor(sourceBytes(spec), destinationBytes(spec));
    return made;
  }
  llvm::Expected<std::unique_ptr<Operation>>
  prepareSend(int32_t peer, int64_t tag, int64_t bytes,
              const std::string &name) override {
    auto made = adapt(inner.prepareSendOnStream(peer, tag, bytes, name));
    if (made)
      (*made)->addTensor(bytes, 0);
    return made;
  }
  llvm::Expected<std::unique_ptr<Operation>>
  prepareReceive(int32_t peer, int64_t tag, int64_t bytes,
                 const std::string &name) override {
    auto made = adapt(inner.prepareReceiveOnStream(peer, tag, bytes, name));
    if (made)
      (*made)->addTensor(0, bytes);
    return made;
  }
  llvm::Error barrier(Group &group) override { return inner.barrier(group); }
  void abort(const std::string &reason) override { inner.abort(reason); }
  std::string getAbortReason() const override { return inner.getAbortReason(); }

private:
  llvm::Expected<std::unique_ptr<UploadedOperation>>
  adapt(llvm::Expected<std::unique_ptr<StreamOperation>> operation) {
    if (!operation)
      return operation.takeError();
    if (!*operation)
      return makeError(ExitCode::Internal, "no operation on a stream");
    return std::make_unique<UploadedOperation>(device, std::move(*operation));
  }

  Communicator &inner;
  Device &device;
};

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
        DeviceCommunicator communicator(*communicators[rank], *devices[rank]);
        body(communicator);
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
