//===- WithoutCuda.cpp - Device cuda where it cannot be built -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/Backends.h"
#include "ax/Support/Error.h"

namespace ax::rt {

static llvm::Error withoutHeaders() {
  return makeError(ExitCode::Unsupported,
                   "device cuda: this was built without CUDA's headers "
                   "(cuda.h; -DAX_CUDA_INCLUDE says where they are)");
}

// Declared where the build's list of them is called.
// NOLINTNEXTLINE(misc-use-internal-linkage)
void registerCuda(Backends &backends) {
  backends.devices.add(
      "cuda",
      {[](llvm::ArrayRef<int32_t>, const DeviceOptions &)
           -> llvm::Expected<std::vector<std::unique_ptr<Device>>> {
         return withoutHeaders();
       },
       []() -> llvm::Expected<int32_t> { return withoutHeaders(); },
       [](int32_t) -> llvm::Expected<Target> { return withoutHeaders(); }});
}

} // namespace ax::rt
