//===- Processors.cpp - What computes, and how much at once ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Support/Processors.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Threading.h"
#include "llvm/TargetParser/Host.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <thread>

#ifdef __linux__
#include <sched.h>
#endif

namespace ax {

std::optional<double> parseQuota(llvm::StringRef text) {
  auto [quota, period] = text.trim().split(' ');
  int64_t allowed, of;
  if (quota.getAsInteger(10, allowed) || period.getAsInteger(10, of) ||
      allowed <= 0 || of <= 0)
    return std::nullopt;
  return static_cast<double>(allowed) / static_cast<double>(of);
}

/// That of the group itself, as containers see it.
static std::optional<double> readQuota() {
  auto file = llvm::MemoryBuffer::getFileAsStream("/sys/fs/cgroup/cpu.max");
  return file ? parseQuota((*file)->getBuffer()) : std::nullopt;
}

/// Those that the calling thread may run on.
static int32_t countAllowed() {
#ifdef __linux__
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0)
    return CPU_COUNT(&allowed);
#endif
  // Of more than fit into the set the system tells none.
  return static_cast<int32_t>(std::thread::hardware_concurrency());
}

int32_t countProcessors() {
  int32_t cores = countAllowed();
  // Those that it knew when it was asked first; -1 if none.
  if (int physical = llvm::get_physical_cores(); physical > 0)
    cores = std::min(cores, physical);
  if (std::optional<double> quota = readQuota())
    cores = static_cast<int32_t>(std::min<double>(cores, std::ceil(*quota)));
  return std::max(1, cores);
}

std::optional<int32_t> askedThreads() {
  const char *text = std::getenv("OMP_NUM_THREADS");
  int32_t count;
  if (!text ||
      llvm::StringRef(text).split(',').first.trim().getAsInteger(10, count) ||
      count < 1)
    return std::nullopt;
  return count;
}

std::string parseProcessorModel(llvm::StringRef text) {
  for (llvm::StringRef line : llvm::split(text, '\n'))
    if (auto [key, value] = line.split(':'); key.trim() == "model name")
      return value.trim().str();
  return "";
}

std::string findProcessorModel() {
  std::string model;
  if (auto file = llvm::MemoryBuffer::getFileAsStream("/proc/cpuinfo"))
    model = parseProcessorModel((*file)->getBuffer());
  return model.empty() ? llvm::sys::getHostCPUName().str() : model;
}

} // namespace ax
