//===- CudaFailures.cpp - When a call of the driver fails -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "DeviceSuite.h"
#include "TestKernelImage.h"
#include "TestSimgpu.h"

#include "ax/Runtime/HostTransfer.h"
#include "ax/Runtime/Program.h"
#include "ax/Support/Error.h"

#include "llvm/ADT/StringSet.h"

#include <cuda.h>

using namespace ax;
using namespace ax::rt;

namespace {

/// Everything that a device does, once or twice. Returns the first error.
class Scenario {
public:
  ~Scenario() {
    for (Stream *used : {stream.get(), second.get()})
      if (used)
        llvm::consumeError(used->synchronize());
  }
  llvm::Error run() {
    if (llvm::Error error = set(devices, create()))
      return error;
    Device &device = *devices[0];
    device.attachThread();
    for (llvm::Error (Scenario::*step)(Device &) :
         {&Scenario::make, &Scenario::work, &Scenario::ask, &Scenario::capture,
          &Scenario::move})
      if (llvm::Error error = (this->*step)(device))
        return error;
    return llvm::Error::success();
  }

private:
  static const Kernel &makeKernel() {
    static const Kernel kernel = [] {
      Kernel made;
      made.name = "line_up";
      made.format = kernelFormat::ptx;
      made.entry = "line_up";
      std::string bytes = TestKernelImage().join();
      made.image.assign(bytes.begin(), bytes.end());
      made.arguments.resize(1);
      made.launch = {1, 1};
      return made;
    }();
    return kernel;
  }
  static llvm::Expected<std::vector<std::unique_ptr<Device>>> create() {
    DeviceKind cuda = llvm::cantFail(allBackends().devices.find("cuda"));
    llvm::Expected<int32_t> numCards = cuda.countCards();
    if (!numCards)
      return numCards.takeError();
    return cuda.create({0, 0}, DeviceOptions());
  }
  template <typename T>
  static llvm::Error set(T &variable, llvm::Expected<T> value) {
    if (!value)
      return value.takeError();
    variable = std::move(*value);
    return llvm::Error::success();
  }
  /// The first error of calls that are made in order until one fails.
  template <typename... Calls>
  static llvm::Error inOrder(Calls &&...calls) {
    llvm::Error failed = llvm::Error::success();
    (void)((failed = calls(), !failed) && ...);
    return failed;
  }

  llvm::Error make(Device &device) {
    return inOrder(
        [&] { return set(memory, device.allocate(bytes)); },
        [&] { return set(other, device.allocateZeroed(bytes)); },
        [&] { return set(pinned, device.allocatePinned(bytes)); },
        [&] { return set(stream, device.createStream()); },
        [&] { return set(second, device.createStream(StreamPriority::High)); },
        [&] { return set(begin, device.createEvent(true)); },
        [&] { return set(end, device.createEvent(true)); },
        [&] { return set(mark, device.createMark()); },
        [&] { return set(kernel, device.loadKernel(makeKernel())); });
  }
  llvm::Error work(Device &) {
    CopyCommand box;
    box.sizes = {3, 4, 5};
    box.sourceStrides = {60, 10, 1};
    box.destinationStrides = {20, 5, 1};
    CopyCommand run;
    run.sizes = {10};
    run.sourceStrides = run.destinationStrides = {1};
    DeviceAddress here = memory->getAddress(), there = other->getAddress();
    return inOrder([&] { return stream->record(*begin); },
                   [&] { return stream->upload(*pinned, 0, here, bytes); },
                   [&] { return stream->clear(there, bytes); },
                   [&] { return stream->copyStrided(box, here, there); },
                   [&] { return stream->copyStrided(run, here, there); },
                   [&] { return stream->launch(*kernel, &there, nullptr, {}); },
                   [&] { return stream->set(*mark, 1); },
                   [&] { return stream->record(*end); },
                   [&] { return second->wait(*end); },
                   [&] { return second->download(there, *pinned, 0, bytes); });
  }
  llvm::Error ask(Device &device) {
    bool flag = false;
    std::chrono::nanoseconds time;
    MemorySize size;
    return inOrder([&] { return set(flag, stream->isDone()); },
                   [&] { return set(flag, end->isDone()); },
                   [&] { return end->synchronize(); },
                   [&] { return second->synchronize(); },
                   [&] { return stream->synchronize(); },
                   [&] { return set(time, end->since(*begin)); },
                   [&] { return set(size, device.getMemorySize()); });
  }
  llvm::Error capture(Device &) {
    if (llvm::Error error = stream->beginCapture())
      return error;
    llvm::Error error =
        inOrder([&] { return stream->clear(other->getAddress(), bytes); },
                [&] { return stream->recordAtLaunch(*end); });
    auto made = stream->endCapture();
    if (error || !made) {
      llvm::consumeError(error ? made.takeError() : llvm::Error::success());
      return error ? std::move(error) : made.takeError();
    }
    graph = std::move(*made);
    return inOrder([&] { return graph->launch(*stream); },
                   [&] { return second->wait(*end); },
                   [&] { return second->synchronize(); },
                   [&] { return stream->synchronize(); });
  }
  llvm::Error move(Device &device) {
    transfer.emplace(device, *stream, 300);
    Bytes there(bytes), back(bytes);
    return inOrder(
        [&] {
          return transfer->upload(there.data(), memory->getAddress(), bytes);
        },
        [&] {
          return transfer->download(memory->getAddress(), back.data(), bytes);
        });
  }

  static constexpr int64_t bytes = 800;
  std::vector<std::unique_ptr<Device>> devices;
  std::unique_ptr<DeviceMemory> memory, other;
  std::unique_ptr<PinnedMemory> pinned;
  std::unique_ptr<Stream> stream, second;
  std::unique_ptr<Event> begin, end;
  std::unique_ptr<Mark> mark;
  std::unique_ptr<DeviceKernel> kernel;
  std::optional<HostTransfer> transfer;
  std::unique_ptr<StreamGraph> graph;
};

struct Outcome {
  std::string message;
  /// How many calls there were until then; those of destructors follow.
  uint64_t numCalls = 0;
};

Outcome runScenario(const std::map<std::string, std::string> &settings) {
  startSimgpu(settings);
  Scenario scenario;
  std::string message = describeError(scenario.run()).message;
  return {message, simgpuCounted("*")};
}

/// All that a driver of version 13.0 knows, and one that it does not.
std::vector<int> allErrors() {
  std::vector<int> codes;
  auto *nameOf = reinterpret_cast<decltype(cuGetErrorName) *>(
      findInSimgpu("cuGetErrorName"));
  const char *name = nullptr;
  for (int code = 1; code < 1000; ++code)
    if (nameOf(static_cast<CUresult>(code), &name) == CUDA_SUCCESS)
      codes.push_back(code);
  codes.push_back(12345);
  return codes;
}

/// Calls of destructors, also in between, whose errors nobody gets.
const llvm::StringSet<> silent = {"cuDevicePrimaryCtxRelease",
                                  "cuEventDestroy",
                                  "cuGraphDestroy",
                                  "cuGraphExecDestroy",
                                  "cuMemFree",
                                  "cuMemFreeHost",
                                  "cuModuleUnload",
                                  "cuStreamDestroy"};

TEST(CudaFailures, EveryErrorAtEveryCall) {
  Outcome good = runScenario({{"ORDER", "lazy"}});
  ASSERT_EQ(good.message, "");
  uint64_t numCalls = simgpuCounted("*");
  ASSERT_GT(numCalls, good.numCalls);
  ASSERT_GT(good.numCalls, 50U);
  std::vector<int> codes = allErrors();
  ASSERT_GT(codes.size(), 90U);
  const int notReady = 600;
  for (uint64_t number = 1; number <= numCalls; ++number)
    for (int code : codes) {
      std::string message =
          runScenario({{"ORDER", "lazy"},
                       {"FAIL", "*:" + std::to_string(number) + ":" +
                                    std::to_string(code)}})
              .message;
      std::string call =
          llvm::StringRef(simgpuReported()).split(':').first.str();
      if (number > good.numCalls || silent.contains(call) ||
          (code == notReady && llvm::StringRef(call).ends_with("Query")))
        continue;
      bool isNamed = message.find(call + ": ") != std::string::npos ||
                     message.find("device cuda: CUDA's driver") == 0;
      ASSERT_TRUE(isNamed) << "call " << number << ", " << call << ", error "
                           << code << ": '" << message << "'";
    }
}

// The scenario waits for all of its streams, so that none is lost.
TEST(CudaFailures, EveryErrorOfWork) {
  for (const char *order : {"eager", "lazy", "random:1", "random:2"}) {
    ASSERT_EQ(runScenario({{"ORDER", order}}).message, "");
    uint64_t numItems = simgpuCounted("work");
    ASSERT_GT(numItems, 10U);
    for (uint64_t number = 1; number <= numItems; ++number)
      for (int code : {700, 702, 719, 999}) {
        std::string message =
            runScenario({{"ORDER", order},
                         {"FAIL", "work:" + std::to_string(number) + ":" +
                                      std::to_string(code)}})
                .message;
        ASSERT_NE(message.find(": CUDA_ERROR_"), std::string::npos)
            << order << ", item " << number << ": '" << message << "'";
      }
  }
}

TEST(CudaFailures, LateErrorsComeFromWhoWaits) {
  startSimgpu({{"ORDER", "lazy"}});
  DeviceKind cuda = llvm::cantFail(allBackends().devices.find("cuda"));
  auto devices = llvm::cantFail(cuda.create({0}, DeviceOptions()));
  TestRank rank(*devices[0]);
  auto memory = llvm::cantFail(devices[0]->allocate(100));
  llvm::cantFail(rank.stream->clear(memory->getAddress(), 101));
  const char *message =
      "cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS: illegal address";
  EXPECT_EQ(describeError(rank.stream->synchronize()).message, message);
  // And from every later call.
  EXPECT_EQ(describeError(rank.stream->synchronize()).message, message);
  EXPECT_EQ(describeError(devices[0]->createMark().takeError()).message,
            "8 bytes of pinned memory of the host: cuMemHostAlloc: "
            "CUDA_ERROR_ILLEGAL_ADDRESS: illegal address");
}

} // namespace
