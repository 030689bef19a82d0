//===- CudaKernelTest.cpp - Kernels of device cuda ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TestKernelImage.h"

#include "ax/Runtime/AllBackends.h"
#include "ax/Runtime/Program.h"
#include "ax/Support/Error.h"

#include <array>
#include <set>
#include <thread>

using namespace ax;
using namespace ax::rt;

namespace {

/// A rank on the simulated card.
struct Rank {
  explicit Rank(const char *order = "eager", const char *jit = "0",
                const char *failure = nullptr) {
    std::map<std::string, std::string> settings = {{"ORDER", order},
                                                   {"JIT", jit}};
    if (failure)
      settings["FAIL"] = failure;
    startSimgpu(settings);
    DeviceKind cuda = llvm::cantFail(allBackends().devices.find("cuda"));
    devices = llvm::cantFail(cuda.create({0, 0}, DeviceOptions()));
    stream = llvm::cantFail(devices[0]->createStream());
  }
  std::unique_ptr<DeviceKernel> load(const Kernel &kernel, size_t rank = 0) {
    return llvm::cantFail(devices[rank]->loadKernel(kernel));
  }
  ErrorDescription refused(const Kernel &kernel) {
    return describeError(devices[0]->loadKernel(kernel).takeError());
  }

  std::vector<std::unique_ptr<Device>> devices;
  std::unique_ptr<Stream> stream;
};

/// `line_up`, whose threads write down when they come, into memory that a
/// launch gives it.
Kernel kernelOf(const TestKernelImage &image = TestKernelImage()) {
  Kernel kernel;
  kernel.name = "softmax of h.0";
  kernel.format = kernelFormat::ptx;
  kernel.entry = "line_up";
  std::string bytes = image.join();
  kernel.image.assign(bytes.begin(), bytes.end());
  kernel.launch = {2, 4};
  kernel.scratchBytes = 8;
  return kernel;
}

TEST(CudaKernelTest, ALaunchGetsScratchOfAllThreads) {
  for (const char *order : {"eager", "lazy", "random:1"}) {
    Rank rank(order);
    auto kernel = rank.load(kernelOf());
    int64_t bytes = kernel->getWorkspaceBytes();
    EXPECT_EQ(bytes, 8 * 2 * 4);
    auto memory = llvm::cantFail(rank.devices[0]->allocateZeroed(bytes));
    auto pinned = llvm::cantFail(rank.devices[0]->allocatePinned(bytes));
    EXPECT_FALSE(
        rank.stream->launch(*kernel, nullptr, nullptr, memory->getAddress()));
    EXPECT_FALSE(
        rank.stream->download(memory->getAddress(), *pinned, 0, bytes));
    EXPECT_FALSE(rank.stream->synchronize());
    const auto *numbers = static_cast<const int32_t *>(pinned->getData());
    EXPECT_EQ(numbers[0], 8);
    EXPECT_EQ(std::set<int32_t>(numbers + 1, numbers + 9),
              (std::set<int32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  }
}

TEST(CudaKernelTest, BuffersAndScalarsAreParameters) {
  Rank rank;
  Kernel sum = kernelOf();
  sum.entry = "add";
  sum.scratchBytes = 0;
  sum.arguments.resize(3);
  sum.scalarBounds = {100};
  auto kernel = rank.load(sum);
  EXPECT_EQ(kernel->getWorkspaceBytes(), 0);
  auto memory = llvm::cantFail(rank.devices[0]->allocateZeroed(256));
  auto pinned = llvm::cantFail(rank.devices[0]->allocatePinned(256));
  auto *numbers = static_cast<float *>(pinned->getData());
  for (int i = 0; i < 64; ++i)
    numbers[i] = static_cast<float>(i);
  DeviceAddress at = memory->getAddress();
  EXPECT_FALSE(rank.stream->upload(*pinned, 0, at, 256));
  DeviceAddress buffers[] = {at, at + 64, at + 128};
  int64_t count = 10;
  EXPECT_FALSE(rank.stream->launch(*kernel, buffers, &count, {}));
  // What was given may be gone when the stream gets there.
  buffers[0] = {};
  count = 0;
  EXPECT_FALSE(rank.stream->download(at, *pinned, 0, 256));
  EXPECT_FALSE(rank.stream->synchronize());
  for (int i = 0; i < 12; ++i)
    EXPECT_EQ(numbers[32 + i],
              static_cast<float>(i < 10 ? 16 + 2 * i : 32 + i));
}

/// So many kernels whose images differ.
std::vector<Kernel> manyKernels(size_t count) {
  std::vector<Kernel> kernels(count, kernelOf());
  for (size_t i = 0; i < count; ++i)
    kernels[i].image.push_back(static_cast<uint8_t>(i));
  return kernels;
}

TEST(CudaKernelTest, RanksLoadAtTheSameTime) {
  Rank rank("eager", "500");
  std::vector<Kernel> kernels = manyKernels(4);
  std::vector<std::unique_ptr<DeviceKernel>> loaded(8);
  std::vector<std::thread> threads;
  // The second rank wants what the first is at.
  for (size_t i = 0; i < loaded.size(); ++i)
    threads.emplace_back(
        [&, i] { loaded[i] = rank.load(kernels[i % 4], i / 4); });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(simgpuCounted("loadsTogether"), 4U);
  EXPECT_EQ(simgpuCounted("cuModuleLoadDataEx"), 4U);
  loaded.clear();
  EXPECT_EQ(simgpuCounted("cuModuleUnload"), 4U);
}

TEST(CudaKernelTest, WhoWaitsForWhatFailsLoadsItself) {
  Rank rank("eager", "50", "cuModuleLoadDataEx:1:2");
  Kernel kernel = kernelOf();
  std::array<bool, 2> isThere{};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 2; ++i)
    threads.emplace_back([&, i] {
      auto loaded = rank.devices[i]->loadKernel(kernel);
      isThere[i] = bool(loaded);
      llvm::consumeError(loaded.takeError());
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_NE(isThere[0], isThere[1]);
  EXPECT_EQ(simgpuCounted("loadsTogether"), 1U);
}

TEST(CudaKernelTest, ManyAreLoadedAhead) {
  if (std::thread::hardware_concurrency() < 2)
    GTEST_SKIP() << "there is one processor";
  Rank rank("eager", "20");
  std::vector<Kernel> kernels = manyKernels(12);
  // Who wants it is told what is wrong with it.
  kernels[5].image.clear();
  kernels[7].format = "an object";
  std::vector<const Kernel *> all;
  for (const Kernel &kernel : kernels)
    all.push_back(&kernel);
  EXPECT_EQ(rank.devices[0]->loadAhead(llvm::ArrayRef(all).take_front(4)),
            nullptr);
  EXPECT_EQ(simgpuCounted("cuModuleLoadDataEx"), 0U);
  auto ahead = rank.devices[0]->loadAhead(all);
  EXPECT_GE(simgpuCounted("loadsTogether"), 2U);
  EXPECT_EQ(simgpuCounted("cuModuleLoadDataEx"), 10U);
  auto one = rank.load(kernels[0]);
  EXPECT_EQ(simgpuCounted("cuModuleLoadDataEx"), 10U);
  EXPECT_EQ(rank.refused(kernels[5]).code, ExitCode::BadPlan);
  EXPECT_EQ(rank.refused(kernels[7]).code, ExitCode::Unsupported);
  ahead.reset();
  EXPECT_EQ(simgpuCounted("cuModuleUnload"), 9U);
}

// An error is that of who wants the kernel, as long as what was loaded ahead is
// held; then it is tried anew.
TEST(CudaKernelTest, WhatFailsAheadIsNotTriedTwice) {
  if (std::thread::hardware_concurrency() < 2)
    GTEST_SKIP() << "there is one processor";
  Rank rank("eager", "0", "cuModuleLoadDataEx:3:2");
  std::vector<Kernel> kernels = manyKernels(12);
  std::vector<const Kernel *> all;
  for (const Kernel &kernel : kernels)
    all.push_back(&kernel);
  auto ahead = rank.devices[0]->loadAhead(all);
  std::vector<const Kernel *> failed;
  for (const Kernel &kernel : kernels)
    if (auto loaded = rank.devices[0]->loadKernel(kernel); !loaded) {
      llvm::consumeError(loaded.takeError());
      failed.push_back(&kernel);
    }
  ASSERT_EQ(failed.size(), 1U);
  EXPECT_NE(rank.refused(*failed[0]).message.find("cuModuleLoadDataEx"),
            std::string::npos);
  EXPECT_EQ(simgpuCounted("cuModuleLoadDataEx"), 12U);
  ahead.reset();
  EXPECT_TRUE(rank.load(*failed[0]));
  EXPECT_EQ(simgpuCounted("cuModuleLoadDataEx"), 13U);
}

TEST(CudaKernelTest, RanksShareEqualCode) {
  Rank rank;
  Kernel same = kernelOf(), other = kernelOf();
  other.entry = "poke";
  auto first = rank.load(same), second = rank.load(same, 1);
  EXPECT_EQ(simgpuCounted("cuModuleLoadDataEx"), 1U);
  auto third = rank.load(other);
  EXPECT_EQ(simgpuCounted("cuModuleLoadDataEx"), 2U);
  first.reset();
  EXPECT_EQ(simgpuCounted("cuModuleUnload"), 0U);
  second.reset();
  EXPECT_EQ(simgpuCounted("cuModuleUnload"), 1U);
  first = rank.load(same);
  EXPECT_EQ(simgpuCounted("cuModuleLoadDataEx"), 3U);
}

TEST(CudaKernelTest, SaysWhatItDoesNotLoad) {
  Rank rank;
  Kernel foreign = kernelOf(), endless = kernelOf(), nameless = kernelOf();
  foreign.format = kernelFormat::elfX86;
  ErrorDescription error = rank.refused(foreign);
  EXPECT_EQ(error.code, ExitCode::Unsupported);
  EXPECT_EQ(error.message,
            "kernel 'softmax of h.0' is elf-x86-64, and device cuda loads ptx");

  endless.image = {'.', 'v'};
  error = rank.refused(endless);
  EXPECT_EQ(error.code, ExitCode::BadPlan);
  EXPECT_EQ(error.message, "kernel 'softmax of h.0': its text has no end");

  nameless.entry = "nobody";
  error = rank.refused(nameless);
  EXPECT_EQ(error.code, ExitCode::BadPlan);
  EXPECT_NE(error.message.find("kernel 'softmax of h.0': cuModuleGetFunction: "
                               "CUDA_ERROR_NOT_FOUND"),
            std::string::npos)
      << error.message;

  Kernel newer =
      kernelOf(TestKernelImage().replace(".target sm_90", ".target sm_100"));
  error = rank.refused(newer);
  EXPECT_EQ(error.code, ExitCode::Unsupported);
  EXPECT_NE(error.message.find("CUDA_ERROR_NO_BINARY_FOR_GPU"),
            std::string::npos)
      << error.message;
}

// What the driver's compiler has to say comes with its error.
TEST(CudaKernelTest, TellsWhatIsWrongWithPtx) {
  Rank rank;
  ErrorDescription error =
      rank.refused(kernelOf(TestKernelImage().replace(".version 8.0", "")));
  EXPECT_EQ(error.code, ExitCode::BadPlan);
  std::string report = simgpuReported();
  std::string why = report.substr(report.find(": ") + 2);
  EXPECT_NE(error.message.find("CUDA_ERROR_INVALID_PTX"), std::string::npos)
      << error.message;
  EXPECT_NE(error.message.find(why), std::string::npos) << error.message;
}

TEST(CudaKernelTest, CodeIsForTheCard) {
  for (auto [capability, name] :
       {std::pair("80", "sm_80"), std::pair("89", "sm_80"),
        std::pair("90", "sm_90"), std::pair("120", "sm_100")}) {
    startSimgpu({{"CAPABILITY", capability}});
    DeviceKind cuda = llvm::cantFail(allBackends().devices.find("cuda"));
    Target target = llvm::cantFail(cuda.findTarget(0));
    EXPECT_EQ(target.getGpu()->architecture(), name);
    EXPECT_EQ(simgpuCounted("cuDevicePrimaryCtxRetain"), 0U);
  }
  startSimgpu({{"CAPABILITY", "75"}});
  DeviceKind cuda = llvm::cantFail(allBackends().devices.find("cuda"));
  EXPECT_EQ(describeError(cuda.findTarget(0).takeError()).code,
            ExitCode::Usage);
}

} // namespace
