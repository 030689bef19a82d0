//===- WithoutCudnnTest.cpp - cuDNN where it cannot be built --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CudaDnn.h"

#include "ax/Support/Error.h"

#include "gtest/gtest.h"

namespace ax::rt::cuda {

TEST(WithoutCudnnTest, SaysThatAHeaderWasMissing) {
  auto dnn = makeDnn(nullptr, DeviceOptions());
  auto expect = [](llvm::Error error) {
    ErrorDescription said = describeError(std::move(error));
    EXPECT_EQ(said.code, ExitCode::Unsupported);
    EXPECT_EQ(said.message,
              "this was built without cuDNN's header (cudnn_graph.h beside "
              "cuda.h)");
  };
  expect(dnn->prepare(AttentionDesc()).takeError());
  expect(dnn->prepare(AttentionGradientDesc()).takeError());
  expect(dnn->prepare(ConvDesc()).takeError());
}

} // namespace ax::rt::cuda
