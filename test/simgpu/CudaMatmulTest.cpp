//===- CudaMatmulTest.cpp - Products on the simulated GPU -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CpuLibrary.h"
#include "ProductRunner.h"

#include <algorithm>
#include <iostream>
#include <numeric>

using namespace ax;
using namespace ax::rt;

namespace {

void runPlain(const MatmulDesc &desc, std::vector<ViewData> &data) {
  auto op = llvm::cantFail(preparePlainMatmul(desc));
  std::vector<char> workspace(static_cast<size_t>(op->getWorkspaceBytes()) +
                              64);
  std::vector<void *> arguments;
  for (ViewData &argument : data)
    arguments.push_back(argument.memory.mutableData());
  llvm::cantFail(op->execute(arguments.data(), workspace.data()));
}

/// Does the product on the GPU and on the CPU; what lies between a result's
/// elements is compared, too.
void check(ProductRunner &runner, const MatmulDesc &desc, int64_t shift = 0,
           uint32_t seed = 7, int poisoned = -1) {
  ASSERT_EQ(findFault(desc), "") << toString(desc);
  std::mt19937 random(seed);
  std::vector<ViewData> data;
  for (int i = 0; i < numArguments(desc); ++i) {
    data.emplace_back(argumentDesc(desc, i));
    data.back().fillRandom(random);
    if (i == poisoned)
      data.back().memory.setDouble(0, NAN);
  }
  std::vector<ViewData> plain = data;
  runPlain(desc, plain);
  std::string error = llvm::toString(runner.run(desc, data, shift));
  ASSERT_EQ(error, "") << toString(desc) << "\n" << simgpuReported();
  const HostTensor &got = data.back().memory, &wanted = plain.back().memory;
  double largest = 0;
  for (int64_t i = 0; i < got.numElements(); ++i)
    largest =
        std::max(largest, distance(got.getDouble(i), wanted.getDouble(i)));
  double k = static_cast<double>(desc.a.sizes.back());
  ASSERT_LE(largest, tolerance(desc.c.dtype) * std::sqrt(k + 1))
      << toString(desc);
}

/// Descriptions of all kinds that cuBLASLt does.
class RandomProducts {
public:
  explicit RandomProducts(uint32_t seed) : random(seed) {}

  MatmulDesc next() {
    MatmulDesc desc;
    const DType types[] = {DType::F32, DType::F64, DType::F16, DType::BF16};
    desc.a.dtype = desc.b.dtype = desc.c.dtype = types[number(4)];
    if (byteSize(desc.a.dtype) == 2 && number(2))
      desc.c.dtype = DType::F32;
    desc.residual.dtype = desc.c.dtype;
    int64_t m = size(), n = size(), k = 1 + number(9);
    for (int64_t i = number(4); i > 0; --i) {
      int64_t extent = 1 + number(3);
      for (TensorDesc *view : {&desc.a, &desc.b, &desc.c, &desc.residual})
        view->sizes.push_back(extent);
      for (TensorDesc *view : {&desc.a, &desc.b})
        if (number(4) == 0)
          view->sizes.back() = 1;
    }
    extend(desc.a, m, k);
    extend(desc.b, k, n);
    extend(desc.c, m, n);
    desc.hasBias = number(2);
    desc.hasResidual = number(3) == 0;
    if (desc.hasResidual)
      extend(desc.residual, m, n);
    else
      desc.residual = {};
    const Activation activations[] = {Activation::None, Activation::Relu,
                                      Activation::GeluTanh};
    if (!desc.hasResidual)
      desc.activation = activations[number(3)];
    place(desc.a, number(2), true);
    place(desc.b, number(2), true);
    place(desc.c, false, false);
    if (desc.hasResidual) {
      place(desc.residual, false, true);
      // One row for all.
      if (number(4) == 0)
        desc.residual.strides[desc.residual.sizes.size() - 2] = 0;
    }
    return desc;
  }
  int64_t number(int64_t below) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(below));
  }

private:
  int64_t size() { return number(20) ? 1 + number(12) : 0; }
  static void extend(TensorDesc &view, int64_t rows, int64_t columns) {
    view.sizes.push_back(rows);
    view.sizes.push_back(columns);
  }
  /// Chooses strides: the batch and the longer of the matrix' steps in any
  /// order, with and without room between them.
  void place(TensorDesc &view, bool isTransposed, bool mayRepeat) {
    size_t rank = view.sizes.size(), unit = rank - (isTransposed ? 2 : 1);
    std::vector<size_t> order;
    for (size_t d = 0; d < rank; ++d)
      if (d != unit)
        order.push_back(d);
    // Mostly as they are.
    if (number(2))
      std::shuffle(order.begin(), order.end(), random);
    view.strides.assign(rank, 1);
    int64_t step = std::max<int64_t>(view.sizes[unit], 1);
    for (size_t i = order.size(); i-- > 0;) {
      step += number(3) ? 0 : number(9);
      view.strides[order[i]] = step;
      step *= std::max<int64_t>(view.sizes[order[i]], 1);
    }
    for (size_t d = 0; mayRepeat && d + 2 < rank; ++d)
      if (number(6) == 0)
        view.strides[d] = 0;
  }

  std::mt19937 random;
};

class CudaMatmulTest : public ::testing::TestWithParam<const char *> {
protected:
  CudaMatmulTest() { startSimgpu({{"ORDER", GetParam()}}); }
};

INSTANTIATE_TEST_SUITE_P(Cuda, CudaMatmulTest,
                         ::testing::Values("eager", "lazy", "random:1"),
                         [](const auto &info) {
                           std::string name = info.param;
                           return name.substr(0, name.find(':'));
                         });

TEST_P(CudaMatmulTest, RandomDescriptions) {
  ProductRunner runner;
  RandomProducts products(static_cast<uint32_t>(GetParam()[0]));
  for (int i = 0; i < 1000 && !HasFatalFailure(); ++i) {
    MatmulDesc desc = products.next();
    check(runner, desc, products.number(3), static_cast<uint32_t>(i));
  }
  // What was made for one product is gone with it.
  for (const char *kind : {"MatmulDesc", "MatmulPreference", "MatrixLayout"}) {
    std::string name = std::string("cublasLt") + kind;
    EXPECT_GT(simgpuCounted((name + "Create").c_str()), 0U);
    EXPECT_EQ(simgpuCounted((name + "Create").c_str()),
              simgpuCounted((name + "Destroy").c_str()));
  }
}

TEST_P(CudaMatmulTest, EveryTypeAndEpilogue) {
  ProductRunner runner;
  for (DType type : {DType::F32, DType::F64, DType::F16, DType::BF16})
    for (Activation activation :
         {Activation::None, Activation::Relu, Activation::GeluTanh})
      for (int flags = 0; flags < 4; ++flags) {
        MatmulDesc desc = makeProduct(type, {}, 5, 19, 35);
        desc.activation = activation;
        desc.hasBias = flags & 1;
        desc.hasResidual = activation == Activation::None && (flags & 2);
        if (desc.hasResidual)
          desc.residual = desc.c;
        check(runner, desc);
      }
}

TEST_P(CudaMatmulTest, ActivationsKeepNaN) {
  ProductRunner runner;
  for (DType type : {DType::F32, DType::BF16})
    for (Activation activation : {Activation::Relu, Activation::GeluTanh})
      for (int argument = 0; argument < 3; ++argument) {
        MatmulDesc desc = makeProduct(type, {}, 3, 19, 35);
        desc.activation = activation;
        desc.hasBias = true;
        check(runner, desc, 0, 7, argument);
      }
}

TEST_P(CudaMatmulTest, Batches) {
  ProductRunner runner;
  auto calls = [&](const MatmulDesc &desc) {
    uint64_t before = simgpuCounted("cublasLtMatmul");
    check(runner, desc);
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

// Fast kernels are chosen for operands that are aligned, others for all else.
TEST_P(CudaMatmulTest, OperandsOfAnyAlignment) {
  ProductRunner runner;
  for (DType type : {DType::F32, DType::F64, DType::BF16})
    for (int64_t shift : {0, 1, 3, 8}) {
      MatmulDesc desc = makeProduct(type, {3}, 8, 16, 24);
      desc.hasBias = desc.hasResidual = true;
      desc.residual = desc.c;
      check(runner, desc, shift);
    }
}

class ProductRefusals : public ::testing::Test {
protected:
  ProductRefusals() { startSimgpu(); }
};

TEST_F(ProductRefusals, SaysWhatCublasLacks) {
  ProductRunner runner;
  auto expect = [&](const MatmulDesc &desc, const std::string &why) {
    ErrorDescription error = runner.refusal(desc);
    EXPECT_EQ(error.code, ExitCode::Unsupported);
    EXPECT_EQ(error.message, "device cuda does not compute " + toString(desc) +
                                 ": cuBLASLt: " + why);
  };
  MatmulDesc plain = makeProduct(DType::F32, {}, 4, 5, 6);
  expect(makeProduct(DType::I8, {}, 4, 5, 6),
         "products of integers are none of its");
  MatmulDesc desc = plain;
  for (Activation activation : {Activation::GeluErf, Activation::Silu,
                                Activation::Tanh, Activation::Sigmoid}) {
    desc.activation = activation;
    expect(desc, "it has no such activation");
  }
  desc.activation = Activation::Relu;
  desc.hasResidual = true;
  desc.residual = desc.c;
  expect(desc, "it adds before an activation, and not behind it");
  expect(makeProduct(DType::F32, {}, 4, 0, 6), "it has no sums of nothing");
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
  // It is looked for again.
  setenv("AXRUN_CUDA_PATH", driverFolder().c_str(), 1);
  check(runner, desc);
}

TEST_F(ProductRefusals, RoundsToTF32WhenAsked) {
  MatmulDesc desc = makeProduct(DType::F32, {}, 4, 5, 6);
  auto largestError = [&](bool tf32) {
    DeviceOptions options;
    options.tf32 = tf32;
    ProductRunner runner(options);
    std::vector<ViewData> data = randomArguments(desc), plain = data;
    runPlain(desc, plain);
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

} // namespace
