//===- WithoutNccl.cpp - No NCCL where it cannot be built -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/Backends.h"
#include "ax/Support/Error.h"

namespace ax::rt {

// Declared where the build's list of them is called.
// NOLINTNEXTLINE(misc-use-internal-linkage)
void registerNccl(Backends &backends) {
  backends.communicators.add(
      "nccl",
      [](int32_t, const CommunicatorOptions &)
          -> llvm::Expected<std::vector<std::unique_ptr<Communicator>>> {
        return makeError(ExitCode::Usage,
                         "--comm=nccl: this was built without NCCL's header "
                         "(nccl.h beside cuda.h, or in a folder that "
                         "AX_NCCL_INCLUDE names)");
      });
}

} // namespace ax::rt
