//===- SimgpuTest.cpp - What the simulated driver refuses -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "DriverCalls.h"

#include <array>
#include <cmath>
#include <thread>

using namespace ax::rt;

namespace {

using Driver = cuda::Driver;
constexpr CUresult illegal = CUDA_ERROR_ILLEGAL_ADDRESS;
constexpr CUresult invalid = CUDA_ERROR_INVALID_VALUE;
constexpr CUresult invalidHandle = CUDA_ERROR_INVALID_HANDLE;

TEST(SimgpuTest, NothingBeforeItIsStarted) {
  DriverCalls sim;
  startSimgpu({});
  CUdevice device = 0;
  sim.refused(CUDA_ERROR_NOT_INITIALIZED, "cuInit was not called",
              &Driver::cuDeviceGet, &device, 0);
  sim.refused(invalid, "there are no flags", &Driver::cuInit, 1U);
  sim.ok(&Driver::cuInit, 0U);
  int count = 0;
  sim.ok(&Driver::cuDeviceGetCount, &count);
  EXPECT_EQ(count, 1);
  sim.ok(&Driver::cuDeviceGet, &device, 0);
  sim.refused(CUDA_ERROR_INVALID_DEVICE, "there is no card 1",
              &Driver::cuDeviceGet, &device, 1);
}

TEST(SimgpuTest, SettingsThatAreNone) {
  for (auto [name, value] : {std::pair("ORDER", "early"),
                             {"ORDER", "random:"},
                             {"ORDER", "random:1x"},
                             {"MEMORY", "all"},
                             {"FAIL", "cuInit"},
                             {"FAIL", "cuInit:1"},
                             {"FAIL", "cuInit:x:2"},
                             {"CARDS", ""}}) {
    startSimgpu({{name, value}});
    EXPECT_EQ(llvm::toString(Driver::load().takeError()),
              "device cuda: CUDA's driver does not tell its version: error 1");
    EXPECT_EQ(simgpuReported(), std::string("cuDriverGetVersion: SIMGPU_") +
                                    name + " is not what it may be");
  }
}

// A thread's own, and of its own card.
TEST(SimgpuTest, ContextsOfOthers) {
  DriverCalls sim("eager", {{"CARDS", "2"}});
  std::thread([&] {
    CUdeviceptr memory = 0;
    sim.refused(CUDA_ERROR_INVALID_CONTEXT,
                "no context is the calling thread's", &Driver::cuMemAlloc,
                &memory, size_t(1));
  }).join();
  CUevent event = sim.makeEvent();
  CUcontext other = nullptr;
  sim.ok(&Driver::cuDevicePrimaryCtxRetain, &other, 1);
  sim.ok(&Driver::cuCtxSetCurrent, other);
  sim.refused(invalidHandle, "the stream is none of the context",
              &Driver::cuStreamSynchronize, sim.stream);
  CUstream stream = sim.makeStream();
  sim.refused(invalidHandle, "the event is of another context",
              &Driver::cuEventRecord, event, stream);
  sim.ok(&Driver::cuStreamWaitEvent, stream, event, 0U);
  sim.refused(invalid, "are not in memory of the card",
              &Driver::cuMemcpyHtoDAsync, sim.memory,
              static_cast<const void *>(sim.pinned), size_t(1), stream);
  sim.ok(&Driver::cuDevicePrimaryCtxRelease, 1);
  sim.refused(CUDA_ERROR_INVALID_CONTEXT, "nobody holds it",
              &Driver::cuDevicePrimaryCtxRelease, 1);
  sim.refused(CUDA_ERROR_INVALID_CONTEXT, "there is no such context",
              &Driver::cuCtxSetCurrent, other);
  sim.refused(CUDA_ERROR_INVALID_CONTEXT, "no context is the calling thread's",
              &Driver::cuStreamSynchronize, stream);
}

TEST(SimgpuTest, DefaultStreams) {
  DriverCalls sim;
  for (CUstream stream :
       {CUstream(nullptr), CU_STREAM_LEGACY, CU_STREAM_PER_THREAD})
    sim.refused(invalidHandle, "a default stream", &Driver::cuMemsetD8Async,
                sim.memory, static_cast<unsigned char>(0), size_t(1), stream);
  CUstream made = nullptr;
  sim.refused(invalid, "the stream would wait for the default one",
              &Driver::cuStreamCreateWithPriority, &made, 0U, 0);
  for (int priority : {1, -6})
    sim.refused(invalid, "no such priority",
                &Driver::cuStreamCreateWithPriority, &made,
                static_cast<unsigned>(CU_STREAM_NON_BLOCKING), priority);
}

TEST(SimgpuTest, HandlesOfWhatIsGone) {
  DriverCalls sim;
  CUevent event = sim.makeEvent();
  sim.ok(&Driver::cuEventDestroy, event);
  sim.ok(&Driver::cuStreamDestroy, sim.stream);
  sim.refused(invalidHandle, "there is no such event", &Driver::cuEventQuery,
              event);
  sim.refused(invalidHandle, "the stream is none of the context",
              &Driver::cuStreamQuery, sim.stream);
}

TEST(SimgpuTest, AddressesOutsideOfMemory) {
  DriverCalls sim;
  const void *from = sim.pinned;
  void *to = sim.pinned;
  for (auto [at, bytes] : {std::pair<CUdeviceptr, size_t>{sim.memory + 1, 256},
                           {sim.memory + 200, 57},
                           {sim.memory - 1, 2},
                           {sim.memory + 512, 1},
                           {0, 1}}) {
    sim.refused(invalid, "are not in memory of the card",
                &Driver::cuMemcpyHtoDAsync, at, from, bytes, sim.stream);
    sim.refused(invalid, "are not in memory of the card",
                &Driver::cuMemcpyDtoHAsync, to, at, bytes, sim.stream);
  }
  std::array<char, 64> pageable{};
  sim.refused(invalid, "are not in pinned memory", &Driver::cuMemcpyHtoDAsync,
              sim.memory, static_cast<const void *>(pageable.data()),
              size_t(64), sim.stream);
  sim.refused(invalid, "are not in pinned memory", &Driver::cuMemcpyDtoHAsync,
              static_cast<void *>(sim.pinned + 250), sim.memory, size_t(7),
              sim.stream);
  sim.refused(invalid, "the ends overlap", &Driver::cuMemcpyDtoDAsync,
              sim.memory, sim.memory + 63, size_t(64), sim.stream);
  CUdeviceptr seen = 0;
  sim.refused(invalid, "the memory is not pinned",
              &Driver::cuMemHostGetDevicePointer, &seen,
              static_cast<void *>(pageable.data()), 0U);
  sim.refused(invalid, "there is no memory for a number",
              &Driver::cuStreamWriteValue64, sim.stream, sim.memory + 4,
              cuuint64_t(1), 0U);
  sim.refused(invalid, "nothing was allocated at", &Driver::cuMemFree,
              sim.memory + 1);
  sim.ok(&Driver::cuMemFree, sim.memory);
  sim.refused(invalid, "nothing was allocated at", &Driver::cuMemFree,
              sim.memory);
  sim.refused(invalid, "are not in memory of the card",
              &Driver::cuMemcpyHtoDAsync, sim.memory, from, size_t(1),
              sim.stream);
}

TEST(SimgpuTest, NoBytesAreRefused) {
  DriverCalls sim;
  void *host = nullptr;
  sim.refused(invalid, "no bytes are asked for", &Driver::cuMemAlloc,
              &sim.memory, size_t(0));
  sim.refused(invalid, "no bytes are asked for", &Driver::cuMemHostAlloc, &host,
              size_t(0), 0U);
}

TEST(SimgpuTest, BoxesThatCudaDoesNotCopy) {
  DriverCalls sim;
  CUDA_MEMCPY3D good{};
  good.srcMemoryType = good.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  good.srcDevice = sim.memory;
  good.dstDevice = sim.memory + 128;
  good.WidthInBytes = 4;
  good.Height = good.Depth = good.srcHeight = good.dstHeight = 2;
  good.srcPitch = good.dstPitch = 8;
  auto refused = [&](const char *why, void (*spoil)(CUDA_MEMCPY3D &)) {
    CUDA_MEMCPY3D copy = good;
    spoil(copy);
    sim.refused(invalid, why, &Driver::cuMemcpy3DAsync,
                static_cast<const CUDA_MEMCPY3D *>(&copy), sim.stream);
  };
  const char *apart = "rows or slices overlap, or are too far apart";
  const char *reach = "are not in memory of the card";
  refused(apart, [](CUDA_MEMCPY3D &copy) { copy.srcPitch = 3; });
  refused(apart, [](CUDA_MEMCPY3D &copy) { copy.dstHeight = 1; });
  refused(apart, [](CUDA_MEMCPY3D &copy) { copy.srcPitch = 1UL << 31; });
  refused(reach, [](CUDA_MEMCPY3D &copy) { copy.dstHeight = 15; });
  refused(reach, [](CUDA_MEMCPY3D &copy) { copy.srcDevice -= 1; });
  refused("whole boxes", [](CUDA_MEMCPY3D &copy) { copy.srcXInBytes = 1; });
  refused("from card to card",
          [](CUDA_MEMCPY3D &copy) { copy.srcMemoryType = CU_MEMORYTYPE_HOST; });
  sim.ok(&Driver::cuMemcpy3DAsync, static_cast<const CUDA_MEMCPY3D *>(&good),
         sim.stream);
}

// What is behind the end is found out late, and then nothing works any more,
// until the context is gone.
TEST(SimgpuTest, AFaultEndsAContext) {
  DriverCalls sim("lazy");
  sim.ok(&Driver::cuMemsetD8Async, sim.memory, static_cast<unsigned char>(1),
         size_t(257), sim.stream);
  sim.ok(&Driver::cuStreamWriteValue64, sim.stream, sim.memory, cuuint64_t(1),
         0U);
  EXPECT_EQ(sim.call(&Driver::cuStreamSynchronize, sim.stream), illegal);
  EXPECT_EQ(simgpuCounted("work"), 1U);
  EXPECT_EQ(sim.call(&Driver::cuMemFree, sim.memory), illegal);
  EXPECT_EQ(sim.call(&Driver::cuStreamQuery, sim.stream), illegal);
  sim.ok(&Driver::cuDevicePrimaryCtxRelease, 0);
  sim.ok(&Driver::cuDevicePrimaryCtxRetain, &sim.context, 0);
  sim.ok(&Driver::cuCtxSetCurrent, sim.context);
  sim.ok(&Driver::cuMemAlloc, &sim.memory, size_t(100));
}

TEST(SimgpuTest, MemoryThatWorkUses) {
  for (bool isPinned : {false, true}) {
    DriverCalls sim("lazy");
    sim.ok(&Driver::cuMemcpyHtoDAsync, sim.memory + 10,
           static_cast<const void *>(sim.pinned + 10), size_t(1), sim.stream);
    if (isPinned)
      sim.refused(illegal, "work is to use it: a copy of 1 bytes",
                  &Driver::cuMemFreeHost, static_cast<void *>(sim.pinned));
    else
      sim.refused(illegal, "work is to use it: a copy of 1 bytes",
                  &Driver::cuMemFree, sim.memory);
    EXPECT_EQ(sim.call(&Driver::cuStreamSynchronize, sim.stream), illegal);
  }
}

TEST(SimgpuTest, TheHostCannotTouchIt) {
  DriverCalls sim;
  auto *pointer = reinterpret_cast<volatile char *>(sim.memory);
  EXPECT_DEATH(static_cast<void>(*pointer), "");
  EXPECT_DEATH(*pointer = 1, "");
}

TEST(SimgpuTest, FreshMemoryIsNaN) {
  DriverCalls sim;
  std::array<float, 2> values{};
  std::memcpy(values.data(), sim.pinned, sizeof(values));
  EXPECT_TRUE(std::isnan(values[0]));
  std::memset(sim.pinned, 0, DriverCalls::size);
  sim.ok(&Driver::cuMemcpyDtoHAsync, static_cast<void *>(sim.pinned),
         sim.memory, size_t(8), sim.stream);
  sim.synchronize();
  std::memcpy(values.data(), sim.pinned, sizeof(values));
  EXPECT_TRUE(std::isnan(values[0]) && std::isnan(values[1]));
}

TEST(SimgpuTest, TimesOfEventsThatHaveNone) {
  DriverCalls sim("lazy");
  CUevent timed = sim.makeEvent(CU_EVENT_DEFAULT), plain = sim.makeEvent();
  CUevent unused = nullptr;
  sim.refused(invalid, "no such flags here", &Driver::cuEventCreate, &unused,
              static_cast<unsigned>(CU_EVENT_INTERPROCESS));
  float time = 0;
  const char *why = "an event is not timed, or was never recorded";
  sim.refused(invalidHandle, why, &Driver::cuEventElapsedTime, &time, timed,
              timed);
  sim.ok(&Driver::cuEventRecord, timed, sim.stream);
  sim.ok(&Driver::cuEventRecord, plain, sim.stream);
  sim.refused(invalidHandle, why, &Driver::cuEventElapsedTime, &time, plain,
              timed);
  EXPECT_EQ(sim.call(&Driver::cuEventElapsedTime, &time, timed, timed),
            CUDA_ERROR_NOT_READY);
  sim.synchronize();
  sim.ok(&Driver::cuEventElapsedTime, &time, timed, timed);
  EXPECT_EQ(time, 0);
}

TEST(SimgpuTest, UnknownAttributes) {
  DriverCalls sim;
  int value = 0;
  sim.refused(invalid, "no such attribute here", &Driver::cuDeviceGetAttribute,
              &value, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 0);
}

} // namespace
