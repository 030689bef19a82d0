//===- CudaMatmulTest.cpp - Products on the simulated GPU -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CpuComparison.h"
#include "ProductSuite.h"
#include "RefusalTest.h"
#include "SimulatedBackend.h"

#include <iostream>

using namespace ax;
using namespace ax::rt;

namespace {

SimulatedBackend eager("Eager", "eager"), lazy("Lazy", "lazy"),
    shuffled("Random1", "random:1");

INSTANTIATE_TEST_SUITE_P(Cuda, ProductSuite,
                         ::testing::Values(ProductParam{&eager, 1},
                                           ProductParam{&lazy, 2},
                                           ProductParam{&shuffled, 3}),
                         [](const auto &info) {
                           return info.param.backend->getName();
                         });

class ProductRefusals : public RefusalTest {
protected:
  static void expect(const MatmulDesc &desc, const std::string &why) {
    RefusalTest::expect(desc, "cuBLASLt: " + why);
  }
  /// For a bias, and for an activation.
  static void expectNoEpilogue(const MatmulDesc &plain,
                               const std::string &why) {
    MatmulDesc desc = plain;
    desc.hasBias = true;
    expect(desc, why);
    desc = plain;
    desc.activation = Activation::Relu;
    expect(desc, why);
  }
};

TEST_F(ProductRefusals, SaysWhatCublasLacks) {
  MatmulDesc plain = makeProduct(DType::F32, {}, 4, 5, 6);
  const char *integers =
      "of integers it multiplies those of eight bits with a sign alone, in i32";
  expect(makeProduct(DType::I32, {}, 4, 5, 6), integers);
  expect(makeProduct(DType::I8, {}, 16, 16, 16), integers);
  MatmulDesc desc = plain;
  for (Activation activation : {Activation::GeluErf, Activation::Silu,
                                Activation::Tanh, Activation::Sigmoid}) {
    desc.activation = activation;
    expect(desc, "it has no such activation");
  }
  desc = makeProduct(DType::F64, {}, 4, 5, 6);
  desc.activation = Activation::GeluTanh;
  expect(desc, "its GELU has fewer digits than f64");
  desc = plain;
  desc.activation = Activation::Relu;
  desc.hasResidual = true;
  desc.residual = desc.c;
  expect(desc, "it adds before an activation, and not behind it");
  expect(makeProduct(DType::F32, {}, 4, 0, 6), "it has no sums of nothing");
  const std::string trained =
      "it keeps what is put into an activation, and has gradients, of GELU by "
      "tanh in 16 bits only";
  for (ActivationForm form :
       {ActivationForm::ValueAndInput, ActivationForm::Gradient}) {
    desc = makeProduct(DType::F32, {}, 4, 8, 8);
    desc.form = form;
    desc.activation = Activation::GeluTanh;
    desc.input = desc.c;
    expect(desc, trained);
    desc = makeProduct(DType::BF16, {}, 4, 8, 8);
    desc.form = form;
    desc.activation = Activation::Relu;
    desc.input = desc.c;
    expect(desc, trained);
    // Rows of 12 bytes.
    desc = makeProduct(DType::BF16, {}, 4, 8, 6);
    desc.form = form;
    desc.activation = Activation::GeluTanh;
    desc.input = desc.c;
    expect(desc, "neither rows nor columns of a matrix lie one behind another, "
                 "or they do not begin at multiples of 16 bytes");
  }
  expect(makeProduct(DType::F32, {}, 4, int64_t(1) << 31, 6),
         "a dimension is too large for it");
  const char *lies = "neither rows nor columns of a matrix lie one behind "
                     "another";
  desc = plain;
  desc.a.strides = {20, 2};
  expect(desc, lies);
  desc.a.strides = {0, 1};
  expect(desc, lies);
  desc = plain;
  desc.b.strides = {3, 1};
  expect(desc, lies);
  desc = plain;
  desc.c.strides = {1, 4};
  expect(desc, lies);
  desc = plain;
  desc.hasResidual = true;
  desc.residual = desc.c;
  desc.residual.strides = {1, 0};
  expect(desc, lies);
}

TEST_F(ProductRefusals, SaysWhichFactorsOfEightBitsCublasLacks) {
  ProductRunner runner;
  const DType narrow = DType::F8E4M3FN, wide = DType::F8E5M2;
  const char *types = "one of two factors of eight bits is f8E4M3FN";
  expect(makeFloat8Product(wide, wide, 16, 16, 16), types);
  MatmulDesc plain = makeFloat8Product(narrow, wide, 16, 32, 48), desc = plain;
  EXPECT_EQ(toString(desc), "matmul 16x32 f8E4M3FN x 32x48 f8E5M2");
  checkProduct(runner, desc);
  expectNoEpilogue(plain, "it does neither a bias nor an activation in f32 "
                          "along with factors of eight bits");
  const char *sizes = "of factors of eight bits, the columns of the result and "
                      "what is summed over are multiples of 16";
  expect(makeFloat8Product(narrow, wide, 16, 24, 48), sizes);
  expect(makeFloat8Product(narrow, wide, 16, 32, 8), sizes);
  // Rows may be any number.
  checkProduct(runner, makeFloat8Product(narrow, wide, 5, 32, 16));
  expect(makeFloat8Product(narrow, wide, 16, 0, 16),
         "it has no sums of nothing");
  const char *lies = "neither rows nor columns of a matrix lie one behind "
                     "another, or they do not begin at multiples of 16 bytes";
  desc = plain;
  desc.a.strides = {2, 2};
  expect(desc, lies);
  desc.a.strides = {40, 1};
  expect(desc, lies);
  desc.a.strides = {48, 1};
  checkProduct(runner, desc);
  // Batches that are done one by one.
  desc.a = {narrow, {2, 3, 16, 32}, {1600, 512, 32, 1}};
  desc.b = {wide, {2, 3, 32, 48}, {0, 1536, 1, 32}};
  desc.c = TensorDesc::dense(DType::F32, {2, 3, 16, 48});
  checkProduct(runner, desc);
  desc.a.strides[0] = 1608;
  expect(desc, lies);
}

TEST_F(ProductRefusals, SaysWhichIntegersCublasLacks) {
  ProductRunner runner;
  auto make = [](int64_t m, int64_t k, int64_t n) {
    MatmulDesc desc;
    desc.a = TensorDesc::dense(DType::I8, {m, k});
    desc.b = {DType::I8, {k, n}, {1, k}};
    desc.c = TensorDesc::dense(DType::I32, {m, n});
    return desc;
  };
  MatmulDesc plain = make(3, 32, 48), desc = plain;
  checkProduct(runner, desc);
  desc.a.dtype = DType::U8;
  expect(desc, "of integers it multiplies those of eight bits with a sign "
               "alone, in i32");
  const char *epilogues = "it does nothing along with sums of integers";
  expectNoEpilogue(plain, epilogues);
  desc = plain;
  desc.hasResidual = true;
  desc.residual = desc.c;
  expect(desc, epilogues);
  const char *sizes = "of factors of eight bits, the columns of the result and "
                      "what is summed over are multiples of 16";
  expect(make(3, 24, 48), sizes);
  expect(make(3, 32, 8), sizes);
  const char *lies = "what is summed over does not lie innermost in both "
                     "factors, or they do not begin at multiples of 16 bytes";
  desc = plain;
  desc.b.strides = {48, 1};
  expect(desc, lies);
  desc = plain;
  desc.a.strides = {1, 16};
  expect(desc, lies);
  desc.a.strides = {40, 1};
  expect(desc, lies);
}

TEST_F(ProductRefusals, OperandsOfEightBitsAreAligned) {
  ProductRunner runner;
  for (DType factor : {DType::F8E4M3FN, DType::I8}) {
    MatmulDesc desc = makeFloat8Product(factor, factor, 16, 16, 16);
    if (factor == DType::I8)
      desc.c.dtype = DType::I32;
    std::vector<ViewData> data = randomArguments(desc);
    ErrorDescription error = describeError(runner.run(desc, data, /*shift=*/1));
    EXPECT_EQ(error.code, ExitCode::RunFailed);
    EXPECT_EQ(error.message, "operands of a product of eight bits are not "
                             "aligned to 16 bytes");
  }
}

TEST_F(ProductRefusals, WhatIsKeptOfAnActivationIsAligned) {
  ProductRunner runner;
  MatmulDesc desc = makeProduct(DType::BF16, {}, 8, 16, 24);
  desc.activation = Activation::GeluTanh;
  desc.form = ActivationForm::ValueAndInput;
  desc.input = desc.c;
  std::vector<ViewData> data = randomArguments(desc);
  ErrorDescription error = describeError(runner.run(desc, data, /*shift=*/1));
  EXPECT_EQ(error.code, ExitCode::RunFailed);
  EXPECT_EQ(error.message,
            "what is put into an activation is not aligned to 16 bytes");
}

TEST_F(ProductRefusals, EightBitsByCard) {
  MatmulDesc inner =
      makeFloat8Product(DType::F8E4M3FN, DType::F8E5M2, 16, 16, 16);
  MatmulDesc outer = inner;
  std::swap(outer.b.strides[0], outer.b.strides[1]);
  // The capability, and whether there are products with sums innermost, and
  // others.
  for (auto [capability, hasInner, hasOuter] :
       {std::tuple("80", false, false), std::tuple("89", true, false),
        std::tuple("90", true, false), std::tuple("100", true, true),
        std::tuple("120", true, false)}) {
    startSimgpu({{"CAPABILITY", capability}});
    ProductRunner runner;
    for (auto [desc, isThere] :
         {std::pair(&inner, hasInner), std::pair(&outer, hasOuter)}) {
      if (isThere) {
        checkProduct(runner, *desc);
        continue;
      }
      ErrorDescription error = runner.refusal(*desc);
      EXPECT_EQ(error.code, ExitCode::Unsupported);
      EXPECT_NE(error.message.find("cublasLtMatmulAlgoGetHeuristic: "
                                   "CUBLAS_STATUS_NOT_SUPPORTED (15): "),
                std::string::npos)
          << error.message;
    }
  }
}

/// Tells what a product is refused for where the folder has no cuBLASLt.
[[noreturn]] void refuseWithoutCublas() {
  // The stand-in of the driver is in the process, whatever the folders are.
  ProductRunner runner;
  setenv("AXRUN_CUDA_PATH", "/there/is/none", 1);
  std::cerr << runner.refusal(makeProduct(DType::F32, {}, 4, 5, 6)).message;
  std::exit(0);
}

TEST_F(ProductRefusals, SaysWhereItLookedForCublas) {
  // In a process of its own: what another test has loaded is found by its name.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  // On a machine that has one it does not know this driver.
  EXPECT_EXIT(refuseWithoutCublas(), testing::ExitedWithCode(0),
              "^device cuda does not compute .*: there is no cuBLASLt in the "
              "folders of AXRUN_CUDA_PATH, or where the system has libraries: "
              "/there/is/none/libcublasLt.so.13: |CUBLAS_STATUS_");
}

TEST_F(ProductRefusals, SaysWhichFunctionIsMissing) {
  ProductRunner runner;
  MatmulDesc desc = makeProduct(DType::F32, {}, 4, 5, 6);
  setenv("AXRUN_CUDA_PATH", driverFolder("poor-simgpu").c_str(), 1);
  ErrorDescription error = runner.refusal(desc);
  EXPECT_EQ(error.code, ExitCode::Unsupported);
  EXPECT_EQ(error.message, "device cuda does not compute " + toString(desc) +
                               ": the cuBLASLt that is there has no function "
                               "cublasLtDestroy");
  // Ranks of the card are told the same, whatever is there meanwhile; other
  // devices look for it again.
  setenv("AXRUN_CUDA_PATH", driverFolder().c_str(), 1);
  EXPECT_EQ(runner.refusal(desc).message, error.message);
  ProductRunner other;
  checkProduct(other, desc);
}

TEST_F(ProductRefusals, RoundsToTF32WhenAsked) {
  MatmulDesc desc = makeProduct(DType::F32, {}, 4, 5, 6);
  auto largestError = [&](bool tf32) {
    DeviceOptions options;
    options.tf32 = tf32;
    ProductRunner runner(options);
    std::vector<ViewData> data = randomArguments(desc), plain = data;
    runOnCpu(preparePlainMatmul(desc), plain);
    llvm::cantFail(runner.run(desc, data));
    double largest = 0;
    for (int64_t i = 0; i < 24; ++i)
      largest = std::max(largest, distance(data[2].memory.getDouble(i),
                                           plain[2].memory.getDouble(i)));
    return largest;
  };
  EXPECT_LT(largestError(false), 1e-6);
  EXPECT_GT(largestError(true), 1e-5);
  EXPECT_LT(largestError(true), 1e-2);
  // Other factors stay what they are.
  desc = makeProduct(DType::F64, {}, 4, 5, 6);
  EXPECT_LT(largestError(true), 1e-12);
}

/// All of cuBLASLt that a product takes, and the first error.
ErrorDescription runOne(const std::map<std::string, std::string> &settings) {
  startSimgpu(settings);
  MatmulDesc desc = makeProduct(DType::F32, {2}, 4, 5, 6);
  desc.hasBias = true;
  std::vector<ViewData> data = randomArguments(desc);
  ProductRunner runner;
  llvm::Error error = runner.run(desc, data);
  if (!error)
    return {ExitCode::Success, ""};
  return describeError(std::move(error));
}

TEST_F(ProductRefusals, EveryStatusAtEveryCall) {
  ASSERT_EQ(runOne({}).message, "");
  uint64_t numCalls = simgpuCounted("cublasLt*");
  ASSERT_GT(numCalls, 40U);
  for (uint64_t number = 1; number <= numCalls; ++number)
    for (int status : {1, 3, 7, 8, 11, 13, 14, 15, 16, 99}) {
      ErrorDescription error =
          runOne({{"FAIL", "cublasLt*:" + std::to_string(number) + ":" +
                               std::to_string(status)}});
      std::string call =
          llvm::StringRef(simgpuReported()).split(':').first.str();
      // Nobody gets the errors of destructors.
      if (llvm::StringRef(call).ends_with("Destroy")) {
        ASSERT_EQ(error.message, "") << call;
        continue;
      }
      std::string text =
          call + ": " +
          (status == 99 ? "unrecognized status" : "CUBLAS_STATUS_");
      ASSERT_NE(error.message.find(text), std::string::npos)
          << "call " << number << ", " << call << ", status " << status << ": '"
          << error.message << "'";
      ASSERT_EQ(error.code, status == 15 || call == "cublasLtCreate"
                                ? ExitCode::Unsupported
                                : ExitCode::RunFailed);
    }
}

TEST_F(ProductRefusals, ErrorsOfTheDriver) {
  EXPECT_EQ(runOne({{"FAIL", "simgpuEnqueue:1:719"}}).message,
            "cublasLtMatmul: CUBLAS_STATUS_EXECUTION_FAILED (13): the function "
            "failed to launch on the GPU");
  // Uploads of four arguments come before.
  std::string message =
      runOne({{"ORDER", "lazy"}, {"FAIL", "work:9:719"}}).message;
  EXPECT_NE(message.find("CUDA_ERROR_LAUNCH_FAILED"), std::string::npos)
      << message;
}

TEST_F(ProductRefusals, NoAlgorithmIsUnsupported) {
  ErrorDescription error =
      runOne({{"FAIL", "cublasLtMatmulAlgoGetHeuristic:1:15"}});
  EXPECT_EQ(error.code, ExitCode::Unsupported);
  EXPECT_NE(error.message.find("cublasLtMatmulAlgoGetHeuristic: "
                               "CUBLAS_STATUS_NOT_SUPPORTED (15): "),
            std::string::npos);
  error = runOne({{"ALGORITHMS", "0"}});
  EXPECT_EQ(error.code, ExitCode::Unsupported);
  EXPECT_NE(error.message.find("cuBLASLt: it knows no algorithm for it"),
            std::string::npos)
      << error.message;
}

// Behind those that look for cuBLASLt: it stays in the process.
class CudaMatmulTest : public ::testing::Test {
protected:
  CudaMatmulTest() { startSimgpu(); }
};

TEST_F(CudaMatmulTest, NothingIsLeftOfAProduct) {
  ProductRunner runner;
  for (int64_t size : {1, 5, 19})
    checkProduct(runner, makeProduct(DType::F32, {}, size, 6, 7));
  for (const char *kind : {"MatmulDesc", "MatmulPreference", "MatrixLayout"}) {
    std::string name = std::string("cublasLt") + kind;
    EXPECT_GT(simgpuCounted((name + "Create").c_str()), 0U);
    EXPECT_EQ(simgpuCounted((name + "Create").c_str()),
              simgpuCounted((name + "Destroy").c_str()));
  }
}

TEST_F(CudaMatmulTest, WorkspacesAreKnownBefore) {
  // The first of the heuristic's, or the fastest of all.
  for (const char *numTimed : {"1", "8"}) {
    startSimgpu();
    setenv("AXRUN_CUDA_ALGORITHMS", numTimed, 1);
    ProductRunner runner;
    uint64_t before = simgpuCounted("cuMemAlloc");
    MatmulDesc desc = makeProduct(DType::F32, {}, 16, 16, 16);
    EXPECT_GE(llvm::cantFail(runner.device.findWorkspace(desc)), 4096);
    EXPECT_EQ(simgpuCounted("cuMemAlloc"), before);
    EXPECT_GE(runner.findWorkspace(desc), 4096);
    EXPECT_EQ(runner.findWorkspace(makeProduct(DType::F32, {}, 0, 5, 6)), 0);
    // What the card lacks.
    MatmulDesc whole = makeProduct(DType::I32, {}, 4, 5, 6);
    EXPECT_EQ(llvm::cantFail(runner.device.findWorkspace(whole)), 0);
  }
}

TEST_F(CudaMatmulTest, Batches) {
  ProductRunner runner;
  auto calls = [&](const MatmulDesc &desc) {
    uint64_t before = simgpuCounted("cublasLtMatmul");
    checkProduct(runner, desc);
    return simgpuCounted("cublasLtMatmul") - before;
  };
  // One call, where they lie at one distance.
  EXPECT_EQ(calls(makeProduct(DType::F32, {2, 3}, 4, 5, 6)), 1U);
  MatmulDesc desc = makeProduct(DType::F32, {2, 3}, 4, 5, 6);
  desc.b = TensorDesc::dense(DType::F32, {1, 1, 5, 6});
  EXPECT_EQ(calls(desc), 1U);
  // Heads: [batch, rows, head, k] seen as [batch, head, rows, k].
  desc = makeProduct(DType::F32, {2, 3}, 4, 5, 6);
  desc.a.strides = {60, 5, 15, 1};
  desc.c.strides = {72, 6, 18, 1};
  EXPECT_EQ(calls(desc), 2U);
  // Either batch is repeated by one factor: where that is b, there are rows.
  desc = makeProduct(DType::F32, {2, 3}, 4, 5, 6);
  desc.a.strides = {0, 20, 5, 1};
  desc.b.strides = {30, 0, 6, 1};
  EXPECT_EQ(calls(desc), 1U);
  desc.b.strides = {0, 30, 6, 1};
  desc.a.strides = {20, 0, 5, 1};
  EXPECT_EQ(calls(desc), 2U);
  // As rows, those of a batch would be neither one behind another nor columns.
  desc = makeProduct(DType::F32, {3}, 1, 5, 6);
  desc.b = TensorDesc::dense(DType::F32, {1, 5, 6});
  desc.a.strides = {2, 1, 6};
  EXPECT_EQ(calls(desc), 1U);
  EXPECT_EQ(calls(makeProduct(DType::F32, {3}, 0, 5, 6)), 0U);
}

} // namespace
