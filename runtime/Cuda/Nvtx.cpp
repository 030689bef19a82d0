//===- Nvtx.cpp - Ranges for NVIDIA's profilers ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NVTX is a header, which opens the profiler's library at the first call.
//
//===----------------------------------------------------------------------===//

#include "Nvtx.h"

#include "ax/Runtime/ProfilerRange.h"

#include <cstdlib>
#include <nvtx3/nvToolsExt.h>

namespace ax::rt::cuda {

void listenForProfiler() {
  static constexpr RangeListener nvtx{
      [](const char *name) { nvtxRangePushA(name); }, [] { nvtxRangePop(); }};
  const char *library = std::getenv("NVTX_INJECTION64_PATH");
  if (library && *library)
    setRangeListener(&nvtx);
}

} // namespace ax::rt::cuda
