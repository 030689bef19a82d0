//===- WithoutCudaTest.cpp - Device cuda where it cannot be built ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/Backends.h"
#include "ax/Support/Error.h"

#include "gtest/gtest.h"

#include <array>

namespace ax::rt {

void registerCuda(Backends &backends);

TEST(WithoutCudaTest, SaysThatHeadersWereMissing) {
  Backends backends;
  registerCuda(backends);
  DeviceKind cuda = llvm::cantFail(backends.devices.find("cuda"));
  std::array errors = {cuda.countCards().takeError(),
                       cuda.findTarget(0).takeError(),
                       cuda.create({0}, {}).takeError()};
  for (llvm::Error &refused : errors) {
    ErrorDescription error = describeError(std::move(refused));
    EXPECT_EQ(error.code, ExitCode::Unsupported);
    EXPECT_EQ(error.message,
              "device cuda: this was built without CUDA's headers (cuda.h; "
              "-DAX_CUDA_INCLUDE says where they are)");
  }
}

} // namespace ax::rt
