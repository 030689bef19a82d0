//===- WithoutNcclTest.cpp - Communicator nccl without NCCL's header ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/Backends.h"
#include "ax/Support/Error.h"

#include "gtest/gtest.h"

namespace ax::rt {

void registerNccl(Backends &backends);

TEST(WithoutNcclTest, SaysThatTheHeaderWasMissing) {
  Backends backends;
  registerNccl(backends);
  auto create = llvm::cantFail(backends.communicators.find("nccl"));
  ErrorDescription error = describeError(create(2, {}).takeError());
  EXPECT_EQ(error.code, ExitCode::Usage);
  EXPECT_EQ(error.message,
            "--comm=nccl: this was built without NCCL's header (nccl.h beside "
            "cuda.h, or in a folder that AX_NCCL_INCLUDE names)");
}

} // namespace ax::rt
