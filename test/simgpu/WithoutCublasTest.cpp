//===- WithoutCublasTest.cpp - Products where they cannot be built --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CudaProducts.h"

#include "ax/Support/Error.h"

#include "gtest/gtest.h"

namespace ax::rt::cuda {

TEST(WithoutCublasTest, SaysThatAHeaderWasMissing) {
  auto products = makeProducts(nullptr, false);
  ErrorDescription error = describeError(products->prepare({}).takeError());
  EXPECT_EQ(error.code, ExitCode::Unsupported);
  EXPECT_EQ(error.message,
            "this was built without cuBLASLt's header (cublasLt.h beside "
            "cuda.h)");
}

} // namespace ax::rt::cuda
