//===- SimgpuLaunchTest.cpp - Kernels on the simulated driver -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TestKernelImage.h"

#include <array>
#include <climits>
#include <numeric>
#include <set>

using namespace ax::rt;

namespace {

using Driver = cuda::Driver;
constexpr CUresult illegal = CUDA_ERROR_ILLEGAL_ADDRESS;
constexpr CUresult invalid = CUDA_ERROR_INVALID_VALUE;
constexpr CUdeviceptr null = 0;

const std::array<const char *, 5> orders = {"eager", "lazy", "random:1",
                                            "random:2", "random:3"};

/// Puts numbers on the card, by way of the start of the pinned memory.
template <typename T, size_t N>
void upload(KernelCalls &sim, CUdeviceptr to, const std::array<T, N> &values) {
  std::memcpy(sim.pinned, values.data(), sizeof(values));
  sim.ok(&Driver::cuMemcpyHtoDAsync, to, static_cast<const void *>(sim.pinned),
         sizeof(values), sim.stream);
  sim.synchronize();
}

template <typename T, size_t N>
std::array<T, N> download(KernelCalls &sim, CUdeviceptr from) {
  std::array<T, N> values;
  sim.ok(&Driver::cuMemcpyDtoHAsync, static_cast<void *>(sim.pinned), from,
         sizeof(values), sim.stream);
  sim.synchronize();
  std::memcpy(values.data(), sim.pinned, sizeof(values));
  return values;
}

TEST(SimgpuLaunchTest, AKernelAddsArrays) {
  constexpr int32_t count = 50;
  std::array<float, count> a{}, b{}, sum{};
  for (int32_t i = 0; i < count; ++i) {
    a[i] = float(i);
    b[i] = float(i * i);
    sum[i] = a[i] + b[i];
  }
  for (const char *order : orders) {
    KernelCalls sim(order);
    CUdeviceptr first = sim.allocate(sizeof(a)), second = sim.allocate(1000),
                third = sim.allocate(400);
    upload(sim, first, a);
    upload(sim, second + 192, b);
    EXPECT_EQ(sim.launch("add", 3, 7, first, second + 192, third + 4, count),
              CUDA_SUCCESS)
        << simgpuReported();
    EXPECT_EQ((download<float, count>(sim, third + 4)), sum) << order;
  }
}

// Parameters are read by the call, memory when the stream gets there.
TEST(SimgpuLaunchTest, MemoryIsReadLater) {
  KernelCalls sim("lazy");
  std::array<float, 1> one{1}, two{2};
  CUdeviceptr memory = sim.allocate(64);
  upload(sim, sim.memory, one);
  EXPECT_EQ(sim.launch("add", 1, 1, sim.memory, sim.memory, memory, 1),
            CUDA_SUCCESS);
  CUstream other = sim.makeStream();
  std::swap(sim.stream, other);
  upload(sim, sim.memory, two);
  std::swap(sim.stream, other);
  EXPECT_EQ((download<float, 1>(sim, memory)), (std::array<float, 1>{4}));
}

/// In which order threads run, of 4 blocks of 3.
std::array<int32_t, 12> orderOf(const char *order) {
  KernelCalls sim(order);
  upload(sim, sim.memory, std::array<int32_t, 1>{0});
  EXPECT_EQ(sim.launch("line_up", 4, 3, sim.memory), CUDA_SUCCESS);
  return download<int32_t, 12>(sim, sim.memory + 4);
}

TEST(SimgpuLaunchTest, ThreadsRunInTheOrderOfASeed) {
  std::array<int32_t, 12> lastFirst, sorted;
  std::iota(lastFirst.rbegin(), lastFirst.rend(), 0);
  std::iota(sorted.begin(), sorted.end(), 0);
  EXPECT_EQ(orderOf("eager"), lastFirst);
  EXPECT_EQ(orderOf("lazy"), lastFirst);
  std::set<std::array<int32_t, 12>> found;
  for (const char *order : {"random:1", "random:2", "random:3"}) {
    auto threads = orderOf(order);
    EXPECT_EQ(orderOf(order), threads);
    found.insert(threads);
    // Blocks are not torn apart.
    for (size_t i = 0; i != 12; ++i)
      EXPECT_EQ(threads[i] / 3, threads[i / 3 * 3] / 3);
    std::sort(threads.begin(), threads.end());
    EXPECT_EQ(threads, sorted);
  }
  EXPECT_EQ(found.size(), 3U);
}

TEST(SimgpuLaunchTest, GridsThatAreNone) {
  KernelCalls sim;
  int64_t offset = 0;
  void *given[] = {&sim.memory, &offset};
  void **parameters = given, **none = nullptr;
  struct Bad {
    std::array<unsigned, 7> sizes;
    void **parameters, **extra;
    const char *why;
  };
  for (const Bad &bad :
       {Bad{{0, 1, 1, 1, 1, 1, 0}, parameters, none, "without threads"},
        Bad{{1, 1, 1, 0, 1, 1, 0}, parameters, none, "without threads"},
        Bad{{1, 1, 0, 1, 1, 1, 0}, parameters, none, "without threads"},
        Bad{{1, 2, 1, 1, 1, 1, 0}, parameters, none, "have one dimension"},
        Bad{{1, 1, 1, 1, 1, 2, 0}, parameters, none, "have one dimension"},
        Bad{{1, 1, 1, 1025, 1, 1, 0}, parameters, none, "up to 1024 threads"},
        Bad{{INT_MAX + 1U, 1, 1, 1, 1, 1, 0},
            parameters,
            none,
            "up to 2147483647 blocks"},
        Bad{{1, 1, 1, 1, 1, 1, 4}, parameters, none, "no shared memory"},
        Bad{{1, 1, 1, 1, 1, 1, 0}, parameters, given, "nothing extra"},
        Bad{{1, 1, 1, 1, 1, 1, 0}, none, none, "there are no parameters"}}) {
    const auto &[gx, gy, gz, bx, by, bz, shared] = bad.sizes;
    expectRefused(sim.LaunchKernel(sim.find("poke"), gx, gy, gz, bx, by, bz,
                                   shared, sim.stream, bad.parameters,
                                   bad.extra),
                  invalid, bad.why);
  }
  EXPECT_EQ(simgpuCounted("work"), 0U);
  EXPECT_EQ(sim.launch("poke", 1, 1024, sim.memory, offset), CUDA_SUCCESS);
}

TEST(SimgpuLaunchTest, PointersToNothing) {
  KernelCalls sim;
  int64_t offset = 0;
  CUdeviceptr freed = sim.allocate(256);
  sim.ok(&Driver::cuMemFree, freed);
  int32_t local = 0;
  const char *why = "is not in memory of the card";
  for (CUdeviceptr address :
       {freed, sim.memory - 1, sim.memory + DriverCalls::size + 1,
        reinterpret_cast<CUdeviceptr>(&local),
        reinterpret_cast<CUdeviceptr>(sim.pinned)})
    expectRefused(sim.launch("poke", 1, 1, address, offset), invalid, why);
  expectRefused(sim.launch("add", 1, 1, sim.memory + 32, sim.memory,
                           sim.memory + 128, int32_t(1)),
                invalid, "is no multiple of 64");
  EXPECT_EQ(simgpuCounted("work"), 0U);
  // Who has nothing there does no harm; nor do numbers that look like it.
  EXPECT_EQ(sim.launch("add", 1, 1, null, sim.memory + DriverCalls::size,
                       sim.memory, int32_t(0)),
            CUDA_SUCCESS);
}

/// Bytes of an allocation, whether it ends where pages do or not.
constexpr std::array<size_t, 3> sizes = {256, 4096, 1000};

// The error comes late, and nothing works any more.
TEST(SimgpuLaunchTest, WhatIsBehindMemoryIsNotTouched) {
  for (const char *order : orders)
    for (const char *kernel : {"poke", "peek"})
      for (size_t size : sizes) {
        KernelCalls sim(order);
        CUdeviceptr memory = sim.allocate(size);
        int64_t behind = int64_t(size + 255) / 256 * 256 + 100;
        sim.launch(kernel, 1, 1, memory, behind);
        EXPECT_EQ(sim.call(&Driver::cuStreamSynchronize, sim.stream), illegal);
        std::string report = simgpuReported();
        EXPECT_NE(report.find("kernel " + std::string(kernel) + " touched " +
                              std::to_string(behind - int64_t(size)) +
                              " bytes behind the memory of parameter 0"),
                  std::string::npos)
            << report;
        EXPECT_EQ(sim.call(&Driver::cuMemFree, memory), illegal);
      }
}

TEST(SimgpuLaunchTest, NorWhatIsBeforeOrNowhere) {
  for (auto [offset, why] :
       {std::pair<int64_t, const char *>{
            -4096, "kernel poke touched 4096 bytes before the memory of "
                   "parameter 0"},
        {int64_t(1) << 60, ", which is none of its memory"}}) {
    KernelCalls sim;
    CUdeviceptr memory = sim.allocate(4096);
    expectRefused(sim.launch("poke", 1, 1, memory, offset), illegal, why);
  }
  KernelCalls sim;
  expectRefused(sim.launch("poke", 1, 1, null, int64_t(8)), illegal,
                "kernel poke touched 0x8, which is none of its memory");
}

// What pages do not find.
TEST(SimgpuLaunchTest, NobodyWritesNextToMemory) {
  for (const char *order : orders)
    for (int64_t offset : {int64_t(-1), int64_t(1000)}) {
      KernelCalls sim(order);
      CUdeviceptr memory = sim.allocate(1000);
      sim.launch("poke", 1, 1, memory, offset);
      EXPECT_EQ(sim.call(&Driver::cuStreamSynchronize, sim.stream), illegal);
      std::string report = simgpuReported();
      EXPECT_NE(report.find("kernel poke wrote next to the memory of parameter "
                            "0"),
                std::string::npos)
          << report;
    }
}

TEST(SimgpuLaunchTest, NorDoesTheHost) {
  KernelCalls sim;
  sim.pinned[DriverCalls::size - 1] = 1;
  sim.ok(&Driver::cuMemFreeHost, static_cast<void *>(sim.pinned));
  sim.ok(&Driver::cuMemHostAlloc, reinterpret_cast<void **>(&sim.pinned),
         size_t(100), 0U);
  sim.pinned[100] = 1;
  sim.refused(illegal, "somebody wrote next to the 100 bytes",
              &Driver::cuMemFreeHost, static_cast<void *>(sim.pinned));
}

// All of an allocation is used, and the code is.
TEST(SimgpuLaunchTest, WhatALaunchUses) {
  for (bool isCode : {false, true}) {
    KernelCalls sim("lazy");
    CUdeviceptr memory = sim.allocate(1000);
    EXPECT_EQ(sim.launch("poke", 1, 1, memory + 500, int64_t(0)), CUDA_SUCCESS);
    if (isCode) {
      expectRefused(sim.ModuleUnload(sim.module), illegal,
                    "cuModuleUnload: work is to use it: kernel poke");
    } else {
      sim.refused(illegal, "work is to use it: kernel poke", &Driver::cuMemFree,
                  memory);
    }
    EXPECT_EQ(sim.call(&Driver::cuStreamSynchronize, sim.stream), illegal);
  }
  KernelCalls sim("lazy");
  CUdeviceptr memory = sim.allocate(1000);
  EXPECT_EQ(sim.launch("poke", 1, 1, memory, int64_t(0)), CUDA_SUCCESS);
  sim.synchronize();
  sim.ok(&Driver::cuMemFree, memory);
  EXPECT_EQ(sim.ModuleUnload(sim.module), CUDA_SUCCESS);
}

TEST(SimgpuLaunchTest, LaunchesFailAsTheyAreTold) {
  {
    KernelCalls sim("lazy", {{"FAIL", "cuLaunchKernel:2:719"}});
    EXPECT_EQ(sim.launch("poke", 1, 1, sim.memory, int64_t(0)), CUDA_SUCCESS);
    EXPECT_EQ(sim.launch("poke", 1, 1, sim.memory, int64_t(0)),
              CUDA_ERROR_LAUNCH_FAILED);
    EXPECT_EQ(sim.launch("poke", 1, 1, sim.memory, int64_t(0)), CUDA_SUCCESS);
    EXPECT_EQ(simgpuCounted("cuLaunchKernel"), 3U);
    sim.synchronize();
  }
  KernelCalls sim("lazy", {{"FAIL", "work:2:719"}});
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(sim.launch("poke", 1, 1, sim.memory, int64_t(0)), CUDA_SUCCESS);
  EXPECT_EQ(sim.call(&Driver::cuStreamSynchronize, sim.stream),
            CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(simgpuCounted("work"), 2U);
}

// A fault of the host's own is no kernel's.
TEST(SimgpuLaunchTest, OtherFaultsAreOthers) {
  KernelCalls sim;
  EXPECT_EQ(sim.launch("poke", 1, 1, sim.memory, int64_t(0)), CUDA_SUCCESS);
  EXPECT_DEATH(*reinterpret_cast<volatile char *>(sim.memory) = 1, "");
}

} // namespace
