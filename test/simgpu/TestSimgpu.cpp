//===- TestSimgpu.cpp - The simulated driver, as tests set it up ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TestSimgpu.h"

#include "Simgpu.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>

namespace ax::rt {

std::string driverFolder(const std::string &name) {
  auto program = std::filesystem::read_symlink("/proc/self/exe");
  return program.parent_path().parent_path() / name;
}

void *findInSimgpu(const char *symbol) {
  static void *library =
      dlopen((driverFolder() + "/libcuda.so.1").c_str(), RTLD_NOW);
  return library ? dlsym(library, symbol) : nullptr;
}

template <typename Function>
static Function *find(const char *name) {
  return reinterpret_cast<Function *>(findInSimgpu(name));
}

void startSimgpu(const std::map<std::string, std::string> &settings) {
  setenv("AXRUN_CUDA_PATH", driverFolder().c_str(), 1);
  // Times mean nothing here; AlgorithmTest asks for them.
  setenv("AXRUN_CUDA_ALGORITHMS", "1", 1);
  for (const char *name :
       {"ORDER", "MEMORY", "CARDS", "CAPABILITY", "DRIVER", "FAIL", "DROP_WAIT",
        "COUNTS", "JIT", "PATIENCE", "ALGORITHMS", "CUDNN_ENGINES",
        "CUDNN_VERSION", "NCCL_FAULT", "NCCL_TOGETHER", "NCCL_VERSION"}) {
    std::string variable = std::string("SIMGPU_") + name;
    auto found = settings.find(name);
    if (found == settings.end())
      unsetenv(variable.c_str());
    else
      setenv(variable.c_str(), found->second.c_str(), 1);
  }
  find<decltype(simgpuReset)>("simgpuReset")();
}

std::string simgpuReported() {
  return find<decltype(simgpuReport)>("simgpuReport")();
}

uint64_t simgpuCounted(const char *call) {
  return find<decltype(simgpuCount)>("simgpuCount")(call);
}

} // namespace ax::rt
