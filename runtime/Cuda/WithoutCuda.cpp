//===- WithoutCuda.cpp - Device cuda where it cannot be built -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/Backends.h"
#include "ax/Support/Error.h"

namespace ax::rt {

// Declared where the build's list of them is called.
// NOLINTNEXTLINE(misc-use-internal-linkage)
void registerCuda(Backends &backends) {
  backends.devices.add(
      "cuda",
      [](int32_t, const DeviceOptions &)
          -> llvm::Expected<std::vector<std::unique_ptr<Device>>> {
        return makeError(ExitCode::Unsupported,
                         "device cuda: this was built without CUDA's headers "
                         "(cuda.h; -DAX_CUDA_INCLUDE says where they are)");
      });
}

} // namespace ax::rt
