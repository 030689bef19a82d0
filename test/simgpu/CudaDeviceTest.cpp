//===- CudaDeviceTest.cpp - Device cuda on the simulated driver -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "SimulatedBackend.h"

#include "ax/Runtime/DeviceRates.h"
#include "ax/Runtime/Program.h"
#include "ax/Support/Error.h"

#include <cstdlib>

using namespace ax;
using namespace ax::rt;

namespace {

SimulatedBackend eager("Eager", "eager"), lazy("Lazy", "lazy"),
    first("Random1", "random:1"), second("Random2", "random:2"),
    third("Random3", "random:3");

INSTANTIATE_TEST_SUITE_P(Cuda, DeviceSuite,
                         ::testing::Values(&eager, &lazy, &first, &second,
                                           &third),
                         [](const auto &info) {
                           return info.param->getName();
                         });

using Devices = std::vector<std::unique_ptr<Device>>;

llvm::Expected<Devices> createCuda(llvm::ArrayRef<int32_t> cards = {0}) {
  DeviceKind cuda = llvm::cantFail(allBackends().devices.find("cuda"));
  return cuda.create(cards, DeviceOptions());
}

/// What creating a device says on such a machine.
std::string refusal(const std::map<std::string, std::string> &settings,
                    ExitCode code = ExitCode::Usage) {
  startSimgpu(settings);
  auto devices = createCuda();
  if (devices)
    return "a device";
  ErrorDescription error = describeError(devices.takeError());
  EXPECT_EQ(error.code, code);
  return error.message;
}

TEST(CudaDeviceTest, SaysWhyThereIsNone) {
  EXPECT_EQ(refusal({}), "a device");
  EXPECT_EQ(refusal({{"DRIVER", "12000"}, {"CAPABILITY", "80"}}), "a device");
  EXPECT_EQ(refusal({{"DRIVER", "11080"}}),
            "device cuda: CUDA's driver is of version 11.8, and 12.0 is "
            "needed");
  EXPECT_EQ(refusal({{"CARDS", "0"}}),
            "device cuda: CUDA's driver sees no card");
  EXPECT_EQ(refusal({{"CAPABILITY", "75"}}),
            "device cuda: card 0: Simulated GPU is an sm_75, and sm_80 is "
            "needed; --devices says which cards ranks use");
  EXPECT_EQ(refusal({{"FAIL", "cuDriverGetVersion:1:999"}}),
            "device cuda: CUDA's driver does not tell its version: error 999");
  EXPECT_EQ(refusal({{"FAIL", "cuInit:1:802"}}, ExitCode::RunFailed),
            "device cuda: cuInit: CUDA_ERROR_SYSTEM_NOT_READY: system not "
            "ready");
  EXPECT_EQ(refusal({{"FAIL", "cuInit:1:12345"}}, ExitCode::RunFailed),
            "device cuda: cuInit: an error without a name: 12345");
}

TEST(CudaDeviceTest, SaysWhatADriverLacks) {
  setenv("AXRUN_CUDA_PATH", driverFolder("poor-simgpu").c_str(), 1);
  ErrorDescription error = describeError(createCuda().takeError());
  EXPECT_EQ(error.code, ExitCode::Usage);
  EXPECT_EQ(error.message, "device cuda: CUDA's driver has no function "
                           "cuCtxGetStreamPriorityRange");
}

// In a process of its own, where no driver was loaded before.
TEST(CudaDeviceTest, SaysWhereItLookedForADriver) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("AXRUN_CUDA_PATH", ":/there/is/none:/nor/here", 1);
        auto devices = createCuda();
        // As on a machine that has one.
        if (devices)
          llvm::errs() << "there is a driver";
        exit(devices ? 0 : reportError("test", devices.takeError()));
      },
      [](int status) {
        return WIFEXITED(status) &&
               (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 2);
      },
      "device cuda: there is no driver of CUDA in the folders of "
      "AXRUN_CUDA_PATH, or where the system has libraries: "
      "/there/is/none/libcuda.so.1: .*; /nor/here/libcuda.so.1: .*; "
      "libcuda.so.1: |there is a driver");
}

TEST(CudaDeviceTest, FoldersAreLookedAtInOrder) {
  startSimgpu();
  std::string path =
      "/there/is/none:" + driverFolder() + ":" + driverFolder("poor-simgpu");
  setenv("AXRUN_CUDA_PATH", path.c_str(), 1);
  EXPECT_EQ(llvm::cantFail(createCuda({0, 0, 0})).size(), 3U);
}

TEST(CudaDeviceTest, SaysHowMuchMemoryIsFree) {
  startSimgpu({{"MEMORY", "1000000"}});
  Devices devices = llvm::cantFail(createCuda());
  Device &device = *devices.front();
  auto memory = llvm::cantFail(device.allocate(600000));
  MemorySize size = llvm::cantFail(device.getMemorySize());
  EXPECT_EQ(size.total, 1000000);
  EXPECT_EQ(size.free, 400000);
  ErrorDescription error = describeError(device.allocate(400001).takeError());
  EXPECT_EQ(error.code, ExitCode::RunFailed);
  EXPECT_EQ(error.message,
            "400001 bytes of card 0, of whose 1000000 bytes 400000 are free: "
            "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY: out of memory");
  EXPECT_EQ(describeError(device.allocatePinned(1000001).takeError()).message,
            "1000001 bytes of pinned memory of the host: cuMemHostAlloc: "
            "CUDA_ERROR_OUT_OF_MEMORY: out of memory");
  memory.reset();
  llvm::cantFail(device.allocate(1000000));
}

// Where even that cannot be told, both errors are.
TEST(CudaDeviceTest, SaysWhenFreeMemoryIsNotKnown) {
  startSimgpu({{"MEMORY", "100"}, {"FAIL", "cuMemGetInfo:1:999"}});
  Devices devices = llvm::cantFail(createCuda());
  EXPECT_EQ(describeError(devices[0]->allocate(101).takeError()).message,
            "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n"
            "cuMemGetInfo: CUDA_ERROR_UNKNOWN: unknown");
}

// Of memory there is enough for the first products, or for none.
TEST(CudaDeviceTest, WhatDoesNotFitHasNoRate) {
  for (auto [memory, products] : {std::pair("500000", 1u), {"300000", 0u}}) {
    startSimgpu({{"MEMORY", memory}});
    Devices devices = llvm::cantFail(createCuda());
    DeviceRates rates =
        llvm::cantFail(measureRates(*devices.front(), {DType::F32}));
    EXPECT_EQ(rates.flopsPerSecond.size(), products) << memory;
    EXPECT_EQ(rates.bytesPerSecond, 0);
  }
}

TEST(CudaDeviceTest, RatesEndWithTheDevice) {
  startSimgpu({{"FAIL", "cuMemcpyDtoDAsync:1:700"}});
  Devices devices = llvm::cantFail(createCuda());
  EXPECT_EQ(
      describeError(measureRates(*devices.front(), {}).takeError()).message,
      "cuMemcpyDtoDAsync: CUDA_ERROR_ILLEGAL_ADDRESS: illegal address");
}

TEST(CudaDeviceTest, RanksShareACard) {
  startSimgpu({{"ORDER", "lazy"}});
  Devices devices = llvm::cantFail(createCuda({0, 0}));
  EXPECT_EQ(simgpuCounted("cuDevicePrimaryCtxRetain"), 1U);
  EXPECT_EQ(devices[0]->getMemorySpace(), devices[1]->getMemorySpace());
  EXPECT_EQ(devices[0]->getHostMapping(), nullptr);
  EXPECT_STREQ(devices[0]->getName(), "cuda");
  TestRank here(*devices[0]), there(*devices[1]);
  auto bytes = here.pin(randomBytes(100, 1));
  auto memory = llvm::cantFail(devices[0]->allocate(100));
  auto event = llvm::cantFail(devices[0]->createEvent());
  llvm::cantFail(here.stream->upload(*bytes, 0, memory->getAddress(), 100));
  llvm::cantFail(here.stream->record(*event));
  llvm::cantFail(there.stream->wait(*event));
  EXPECT_EQ(there.read(*memory), randomBytes(100, 1));
}

TEST(CudaDeviceTest, CardsDoNotReachEachOther) {
  startSimgpu({{"CARDS", "2"}, {"MEMORY", "1000"}});
  Devices devices = llvm::cantFail(createCuda({1, 0, 1}));
  EXPECT_EQ(simgpuCounted("cuDevicePrimaryCtxRetain"), 2U);
  EXPECT_NE(devices[0]->getMemorySpace(), devices[1]->getMemorySpace());
  EXPECT_FALSE(devices[0]->canReach(*devices[1]));
  EXPECT_TRUE(devices[0]->canReach(*devices[2]));
  auto memory = llvm::cantFail(devices[0]->allocate(600));
  EXPECT_EQ(llvm::cantFail(devices[2]->getMemorySize()).free, 400);
  EXPECT_EQ(llvm::cantFail(devices[1]->getMemorySize()).free, 1000);
}

/// The cards of so many ranks, where no others are given.
std::vector<int32_t> spread(const char *numCards, int64_t numRanks,
                            std::vector<int32_t> given = {}) {
  startSimgpu({{"CARDS", numCards}});
  BackendOptions options;
  options.device = "cuda";
  options.cards = std::move(given);
  RankBackends ranks = llvm::cantFail(allBackends().create(numRanks, options));
  std::vector<int32_t> cards;
  for (const std::unique_ptr<Device> &device : ranks.devices)
    cards.push_back(device->getCard());
  return cards;
}

TEST(CudaDeviceTest, RanksAreSpreadOverCards) {
  using Cards = std::vector<int32_t>;
  EXPECT_EQ(spread("1", 3), Cards({0, 0, 0}));
  EXPECT_EQ(spread("4", 3), Cards({0, 1, 2}));
  EXPECT_EQ(spread("2", 2), Cards({0, 1}));
  EXPECT_EQ(spread("2", 4), Cards({0, 0, 1, 1}));
  EXPECT_EQ(spread("2", 5), Cards({0, 0, 0, 1, 1}));
  EXPECT_EQ(spread("3", 4, {2, 2, 0, 2}), Cards({2, 2, 0, 2}));
}

// Of cards that nobody uses nothing is asked.
TEST(CudaDeviceTest, CodeIsForAllCardsOfRanks) {
  auto targetOf = [](std::vector<int32_t> cards) {
    startSimgpu({{"CARDS", "4"}, {"CAPABILITY", "90,80,100,75"}});
    auto numRanks = static_cast<int64_t>(cards.size());
    BackendOptions options;
    options.device = "cuda";
    options.cards = std::move(cards);
    auto target = allBackends().findTarget(numRanks, options);
    return target ? target->getGpu()->architecture()
                  : llvm::toString(target.takeError());
  };
  EXPECT_EQ(targetOf({2, 2}), "sm_100");
  EXPECT_EQ(targetOf({2, 0}), "sm_90");
  EXPECT_EQ(targetOf({1, 0}), "sm_80");
  EXPECT_EQ(targetOf({0, 3}),
            "device cuda: card 3: Simulated GPU is an sm_75, and sm_80 is "
            "needed; --devices says which cards ranks use");
  EXPECT_EQ(targetOf({0, 4}),
            "--devices: there is no card 4 of device 'cuda', which has 4, "
            "from 0");
}

// A process has one rank, on a card of its host, which only its number there
// says; what the other hosts have is theirs.
TEST(CudaDeviceTest, ProcessesAreSpreadOverTheirHostsCards) {
  auto targetOf = [](int32_t rank, int32_t index, int32_t onHost,
                     std::vector<int32_t> cards = {}) {
    startSimgpu({{"CARDS", "2"}, {"CAPABILITY", "90,80"}});
    BackendOptions options;
    options.device = "cuda";
    options.ranks = {rank};
    options.indexOnHost = index;
    options.processesOnHost = onHost;
    options.cards = std::move(cards);
    auto target = allBackends().findTarget(6, options);
    return target ? target->getGpu()->architecture()
                  : llvm::toString(target.takeError());
  };
  EXPECT_EQ(targetOf(4, 0, 2), "sm_90");
  EXPECT_EQ(targetOf(5, 1, 2), "sm_80");
  EXPECT_EQ(targetOf(1, 1, 4), "sm_90");
  EXPECT_EQ(targetOf(2, 2, 4), "sm_80");
  EXPECT_EQ(targetOf(4, 0, 2, {7, 7, 7, 7, 1, 7}), "sm_80");
  EXPECT_EQ(targetOf(5, 1, 2, {0, 0, 0, 0, 0, 7}),
            "--devices: there is no card 7 of device 'cuda', which has 2, "
            "from 0");
}

TEST(CudaDeviceTest, SaysWhatItCannotDo) {
  startSimgpu();
  Devices devices = llvm::cantFail(createCuda());
  ErrorDescription error =
      describeError(devices[0]->prepare(TopKDesc(), {}).takeError());
  EXPECT_EQ(error.code, ExitCode::Unsupported);
  EXPECT_NE(error.message.find("device cuda does not compute"),
            std::string::npos);
}

} // namespace
