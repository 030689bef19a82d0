//===- DescribedCard.h - A card that the real cuDNN plans for ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_DESCRIBEDCARD_H
#define AX_TEST_DESCRIBEDCARD_H

#include "Cudnn.h"
#include "TestSimgpu.h"

#include "ax/Support/Error.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <sstream>

namespace ax::rt {

inline std::string readDescription() {
  const char *tests = std::getenv("AX_TEST_DIR");
  std::ifstream file(std::string(tests ? tests : "test") +
                     "/data/cudnn/h100.json");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Skips where there is no cuDNN.
class DescribedCard : public ::testing::Test {
protected:
  /// A card like the H100, but of another compute capability: 1000 is 10.0.
  static cuda::SharedCudnn describeAs(int version) {
    std::string text = readDescription();
    const std::string ofH100 = "\"deviceVer\": 900";
    size_t at = text.find(ofH100);
    EXPECT_NE(at, std::string::npos);
    text.replace(at, ofH100.size(),
                 "\"deviceVer\": " + std::to_string(version));
    return llvm::cantFail(cuda::CudnnHandle::describe(text));
  }

  void SetUp() override {
    // Whoever looks for the driver by its name gets this one from then on.
    std::string driver = driverFolder("nocard") + "/libcuda.so.1";
    ASSERT_TRUE(dlopen(driver.c_str(), RTLD_NOW)) << dlerror();
    llvm::Expected<std::shared_ptr<const cuda::Cudnn>> library =
        cuda::Cudnn::load();
    if (!library)
      GTEST_SKIP() << llvm::toString(library.takeError());
    llvm::Expected<cuda::SharedCudnn> made =
        cuda::CudnnHandle::describe(readDescription());
    ASSERT_TRUE(bool(made)) << llvm::toString(made.takeError());
    h100 = std::move(*made);
  }

  template <typename Plan>
  void expectNoKernel(llvm::Expected<Plan> plan) {
    ASSERT_FALSE(bool(plan));
    ErrorDescription error = describeError(plan.takeError());
    EXPECT_EQ(error.code, ExitCode::Unsupported);
    EXPECT_EQ(error.message, "cuDNN: it knows no kernel for it");
  }

  cuda::SharedCudnn h100;
};

} // namespace ax::rt

#endif // AX_TEST_DESCRIBEDCARD_H
