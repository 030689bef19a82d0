//===- LibraryDriver.cpp - The driver, as stand-ins of libraries find it --===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LibraryDriver.h"

#include <cstdio>
#include <dlfcn.h>

namespace simgpu {

static thread_local const char *underWay = "";

/// Others of its name may be in the process, too.
static void *findDriver() {
  Dl_info here;
  if (!dladdr(reinterpret_cast<const void *>(&findInDriver), &here))
    return nullptr;
  std::string path = here.dli_fname;
  path = path.substr(0, path.rfind('/') + 1) + "libcuda.so.1";
  return dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
}

void *findInDriver(const char *symbol) {
  static void *driver = findDriver();
  return driver ? dlsym(driver, symbol) : nullptr;
}

int enterLibraryCall(const char *call, int missing, uint64_t *context) {
  static auto *function =
      findDriverFunction<decltype(simgpuEnter)>("simgpuEnter");
  underWay = call;
  uint64_t current = 0;
  if (!function) {
    std::fprintf(stderr, "simgpu: %s: there is no simulated driver\n", call);
    return missing;
  }
  int result = function(call, &current);
  if (context)
    *context = current;
  return result;
}

void refuseLibraryCall(const std::string &why) {
  static auto *function =
      findDriverFunction<decltype(simgpuRefuse)>("simgpuRefuse");
  function(underWay, why.c_str());
}

} // namespace simgpu
