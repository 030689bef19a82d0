//===- SimgpuKernelTest.cpp - What the simulated driver loads -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TestKernelImage.h"

#include <array>
#include <elf.h>

using namespace ax::rt;

namespace {

constexpr CUresult invalid = CUDA_ERROR_INVALID_VALUE;
constexpr CUresult invalidHandle = CUDA_ERROR_INVALID_HANDLE;
constexpr CUresult invalidImage = CUDA_ERROR_INVALID_IMAGE;
constexpr CUresult invalidPtx = CUDA_ERROR_INVALID_PTX;

TEST(SimgpuKernelTest, TextsThatAreNone) {
  KernelCalls sim;
  for (auto [old, by, why] :
       {std::array<const char *, 3>{".version 8.0", "", "has no .version"},
        {"8.0", "eight", "its .version is none"},
        {".target sm_90", "", "has no .target"},
        {"sm_90", "gfx90", "its .target is none"},
        {"sm_90", "sm_", "its .target is none"},
        {".address_size 64", "", "its .address_size is not 64"},
        {".address_size 64", ".address_size 32", "its .address_size is not 64"},
        {".address_size 64", ".address_size all", "its .address_size is none"},
        {".param .u32", ".param .what", "parameters of entry add are none"},
        {".param .u32", ".u32", "parameters of entry add are none"},
        {".align 4", ".align x", "parameters of entry add are none"},
        {"add_param_3", "add_param_3[x]", "parameters of entry add are none"},
        {"add_param_3\n)", "add_param_3\n",
         "parameters of entry add are "
         "none"}})
    expectRefused(sim.load(TestKernelImage().replace(old, by)), invalidPtx,
                  why);
  TestKernelImage other;
  other.text = "a model";
  expectRefused(sim.load(other), invalidPtx, "it has no .version");
}

TEST(SimgpuKernelTest, CardsThatAreOlder) {
  KernelCalls sim("eager", {{"CAPABILITY", "90"}});
  expectRefused(sim.load(TestKernelImage().replace("sm_90", "sm_100")),
                CUDA_ERROR_NO_BINARY_FOR_GPU,
                "it is for sm_100, and the card is an sm_90");
  expectRefused(sim.load(TestKernelImage().replace("sm_90", "sm_80a")),
                CUDA_ERROR_NO_BINARY_FOR_GPU,
                "it is for sm_80, and the card is an sm_90");
  for (const char *target : {"sm_80", "sm_90a", "sm_90, debug"})
    EXPECT_EQ(sim.load(TestKernelImage().replace("sm_90", target)),
              CUDA_SUCCESS);
}

TEST(SimgpuKernelTest, DriversThatAreOlder) {
  for (auto [driver, newest, next] :
       {std::array<const char *, 3>{"12000", "8.0", "8.1"},
        {"12060", "8.5", "8.6"},
        {"13000", "9.0", "9.1"}}) {
    KernelCalls sim("eager", {{"DRIVER", driver}});
    EXPECT_EQ(sim.load(TestKernelImage().replace("8.0", newest)), CUDA_SUCCESS);
    expectRefused(sim.load(TestKernelImage().replace("8.0", next)),
                  CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
                  std::string("it is of version ") + next + ", and a driver " +
                      driver + " takes up to " + newest);
  }
}

TEST(SimgpuKernelTest, ObjectsThatAreNone) {
  KernelCalls sim;
  TestKernelImage real;
  real.object.clear();
  expectRefused(sim.load(real), invalidPtx,
                "there is no object behind the text");
  auto damaged = [&](const std::string &why, auto &&damage) {
    TestKernelImage image;
    auto *header = reinterpret_cast<Elf64_Ehdr *>(image.object.data());
    damage(*header);
    expectRefused(sim.load(image), invalidImage,
                  "its object file is damaged: " + why);
  };
  damaged("it is not all there",
          [](Elf64_Ehdr &header) { header.e_shoff = uint64_t(1) << 60; });
  damaged("it is not all there",
          [](Elf64_Ehdr &header) { header.e_shoff = 16 << 20; });
  damaged("it is none for x86-64",
          [](Elf64_Ehdr &header) { header.e_machine = EM_AARCH64; });
  damaged("it has no function 'add_call'",
          [](Elf64_Ehdr &header) { header.e_shnum = 0; });
  expectRefused(sim.load(TestKernelImage().replace("poke(", "push(")),
                invalidImage,
                "its object file is damaged: it has no function 'push_call'");
}

// Where images for real cards end, memory may end, too.
TEST(SimgpuKernelTest, NothingIsReadBehindMemory) {
  KernelCalls sim;
  std::string text = TestKernelImage().text;
  sim.ok(&cuda::Driver::cuMemHostAlloc, reinterpret_cast<void **>(&sim.pinned),
         size_t(4096), 0U);
  char *image = reinterpret_cast<char *>(sim.pinned) + 4095 - text.size();
  std::memcpy(image, text.c_str(), text.size() + 1);
  expectRefused(sim.ModuleLoadDataEx(&sim.module,
                                     static_cast<const void *>(image), 0U,
                                     static_cast<CUjit_option *>(nullptr),
                                     static_cast<void **>(nullptr)),
                invalidPtx, "there is no object behind the text");
}

/// What a log of so many bytes gets that stands before others.
std::string logOf(KernelCalls &sim, const TestKernelImage &image, size_t size,
                  size_t *filled = nullptr) {
  std::string log(100, '#');
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER,
                            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log.data(), reinterpret_cast<void *>(size)};
  sim.ModuleLoadDataEx(
      &sim.module, static_cast<const void *>(image.join().data()), 2U,
      static_cast<CUjit_option *>(options), static_cast<void **>(values));
  if (filled)
    *filled = reinterpret_cast<size_t>(values[1]);
  EXPECT_EQ(log.substr(size), std::string(100 - size, '#'));
  return log.substr(0, size);
}

TEST(SimgpuKernelTest, LogsSayWhy) {
  KernelCalls sim;
  TestKernelImage bad = TestKernelImage().replace(".version 8.0", "");
  const std::string why = "it has no .version";
  size_t filled = 0;
  EXPECT_STREQ(logOf(sim, bad, 50, &filled).c_str(), why.c_str());
  EXPECT_EQ(filled, why.size());
  EXPECT_EQ(logOf(sim, bad, why.size() + 1), why + '\0');
  EXPECT_EQ(logOf(sim, bad, 3, &filled), std::string("it\0", 3));
  EXPECT_EQ(filled, 2U);
  EXPECT_EQ(logOf(sim, bad, 0, &filled), "");
  EXPECT_EQ(filled, 0U);
  EXPECT_STREQ(logOf(sim, TestKernelImage(), 50).c_str(), "");
}

TEST(SimgpuKernelTest, LogsThatAreNone) {
  KernelCalls sim;
  std::string image = TestKernelImage().join();
  auto load = [&](CUjit_option option) {
    void *value = image.data();
    return sim.ModuleLoadDataEx(&sim.module,
                                static_cast<const void *>(image.data()), 1U,
                                &option, &value);
  };
  expectRefused(load(CU_JIT_ERROR_LOG_BUFFER), invalid,
                "a log is a buffer and its size");
  expectRefused(load(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES), invalid,
                "a log is a buffer and its size");
  expectRefused(load(CU_JIT_MAX_REGISTERS), invalid, "no such option here");
}

TEST(SimgpuKernelTest, NamesAndHandlesOfNothing) {
  KernelCalls sim("eager", {{"CARDS", "2"}});
  CUmodule first = sim.module;
  CUfunction function = sim.find("add"), unknown = nullptr;
  EXPECT_EQ(sim.find("add"), function);
  EXPECT_NE(sim.find("poke"), function);
  expectRefused(sim.ModuleGetFunction(&unknown, first, "subtract"),
                CUDA_ERROR_NOT_FOUND, "the module knows no kernel subtract");
  EXPECT_EQ(sim.load(TestKernelImage()), CUDA_SUCCESS);
  EXPECT_NE(sim.module, first);
  EXPECT_NE(sim.find("add"), function);
  auto launch = [&](CUfunction kernel) {
    return sim.LaunchKernel(kernel, 1U, 1U, 1U, 1U, 1U, 1U, 0U, sim.stream,
                            static_cast<void **>(nullptr),
                            static_cast<void **>(nullptr));
  };
  EXPECT_EQ(sim.ModuleUnload(first), CUDA_SUCCESS);
  expectRefused(launch(function), invalidHandle,
                "the kernel is none of the context");
  expectRefused(sim.ModuleUnload(first), invalidHandle,
                "the module is none of the context");
  // Of another card.
  CUfunction here = sim.find("add");
  CUcontext other = nullptr;
  sim.ok(&cuda::Driver::cuDevicePrimaryCtxRetain, &other, 1);
  sim.ok(&cuda::Driver::cuCtxSetCurrent, other);
  sim.stream = sim.makeStream();
  expectRefused(launch(here), invalidHandle,
                "the kernel is none of the context");
  expectRefused(sim.ModuleGetFunction(&unknown, sim.module, "add"),
                invalidHandle, "the module is none of the context");
}

// Other modules of other contexts stay.
TEST(SimgpuKernelTest, AContextTakesItsModulesAway) {
  KernelCalls sim;
  CUmodule module = sim.module;
  sim.ok(&cuda::Driver::cuDevicePrimaryCtxRelease, 0);
  sim.ok(&cuda::Driver::cuDevicePrimaryCtxRetain, &sim.context, 0);
  sim.ok(&cuda::Driver::cuCtxSetCurrent, sim.context);
  expectRefused(sim.ModuleUnload(module), invalidHandle,
                "the module is none of the context");
}

} // namespace
