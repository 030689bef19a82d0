//===- Listener.cpp - What a profiler hears by NVTX -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A library as Nsight Systems puts into a process: it writes the ranges of all
// threads to the file that NVTX_LISTENER_FILE names, a line each where it
// begins: its thread, how many it is in, and its name.
//
//===----------------------------------------------------------------------===//

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

static std::mutex mutex;
static std::FILE *file;
static std::atomic<int> numThreads{0};
static thread_local int thread = -1, depth = 0;

static int NVTX_API pushRange(const char *name) {
  std::lock_guard<std::mutex> lock(mutex);
  if (thread < 0)
    thread = numThreads++;
  std::fprintf(file, "%d %d %s\n", thread, depth, name);
  std::fflush(file);
  return depth++;
}

static int NVTX_API popRange() { return --depth; }

using FindTable = NvtxGetExportTableFunc_t;
#define NVTX_ENTRY extern "C" __attribute__((visibility("default")))

// NVTX looks for this name.
// NOLINTNEXTLINE(readability-identifier-naming)
NVTX_ENTRY int InitializeInjectionNvtx2(FindTable getExportTable) {
  const char *path = std::getenv("NVTX_LISTENER_FILE");
  const auto *callbacks = static_cast<const NvtxExportTableCallbacks *>(
      getExportTable(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned int size = 0;
  if (!path || !callbacks ||
      !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size) ||
      size <= NVTX_CBID_CORE_RangePop)
    return 0;
  file = std::fopen(path, "w");
  if (!file)
    return 0;
  *table[NVTX_CBID_CORE_RangePushA] =
      reinterpret_cast<NvtxFunctionPointer>(&pushRange);
  *table[NVTX_CBID_CORE_RangePop] =
      reinterpret_cast<NvtxFunctionPointer>(&popRange);
  return 1;
}
