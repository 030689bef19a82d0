//===- CudaDeviceTest.cpp - Device cuda on the simulated driver -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "SimulatedBackend.h"

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

llvm::Expected<Devices> createCuda(int32_t numRanks = 1) {
  DeviceKind cuda = llvm::cantFail(allBackends().devices.find("cuda"));
  return cuda.create(numRanks, DeviceOptions());
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
            "needed");
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
  EXPECT_EQ(llvm::cantFail(createCuda(3)).size(), 3U);
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

TEST(CudaDeviceTest, RanksShareACard) {
  startSimgpu({{"ORDER", "lazy"}});
  Devices devices = llvm::cantFail(createCuda(2));
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
