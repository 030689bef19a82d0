//===- CudaConvolutionTest.cpp - Convolutions on the simulated GPU --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ConvolutionSuite.h"
#include "RefusalTest.h"
#include "SimulatedBackend.h"

#include <filesystem>

using namespace ax;
using namespace ax::rt;

namespace {

SimulatedBackend eager("Eager", "eager"), lazy("Lazy", "lazy"),
    shuffled("Random1", "random:1");

INSTANTIATE_TEST_SUITE_P(Cuda, ConvolutionSuite,
                         ::testing::Values(ConvolutionParam{&eager, 1},
                                           ConvolutionParam{&lazy, 2},
                                           ConvolutionParam{&shuffled, 3}),
                         [](const auto &info) {
                           return info.param.backend->getName();
                         });

const ConvShape small = squareShape(2, 8, 16, 6, 3);

class CudaConvolutionTest : public RefusalTest {};

TEST_F(CudaConvolutionTest, SaysWhatIsNotLeftToCudnn) {
  for (ConvKind kind : allConvKinds) {
    expect(makeConvDesc(kind, DType::F64, small),
           "convolutions of f32, f16 and bf16 are left to cuDNN");
    ConvDesc desc = makeConvDesc(kind, DType::F16, small);
    desc.x.strides[0] = 0;
    expect(desc, "cuDNN's convolutions repeat no operand");
    ConvShape shape = small;
    shape.batch = 0;
    expect(makeConvDesc(kind, DType::F16, shape),
           "cuDNN has no convolution of nothing");
    shape = small;
    shape.padsLow[1] = -1;
    const char *negative = "cuDNN has no negative padding";
    expect(makeConvDesc(kind, DType::F16, shape), negative);
    shape = small;
    shape.padsHigh[0] = -1;
    expect(makeConvDesc(kind, DType::F16, shape), negative);
    ConvShape four{1,
                   2,
                   2,
                   1,
                   {3, 3, 3, 3},
                   {1, 1, 1, 1},
                   {1, 1, 1, 1},
                   {1, 1, 1, 1},
                   {0, 0, 0, 0},
                   {0, 0, 0, 0}};
    expect(makeConvDesc(kind, DType::F16, four),
           "cuDNN has convolutions in up to 3 dimensions");
  }
  ConvDesc desc = makeConvDesc(ConvKind::Forward, DType::F16, small);
  desc.activation = Activation::Relu;
  const char *along =
      "convolutions are left to cuDNN with nothing along with them";
  expect(desc, along);
  desc.activation = Activation::None;
  desc.hasBias = true;
  expect(desc, along);
  desc.hasBias = false;
  desc.hasResidual = true;
  expect(desc, along);
}

TEST_F(CudaConvolutionTest, SaysThatCudnnKnowsNoKernel) {
  for (ConvKind kind : allConvKinds) {
    ConvDesc desc = makeConvDesc(kind, DType::BF16, small);
    (kind == ConvKind::WeightGradient ? desc.w : desc.y).dtype = DType::F32;
    expect(desc, "cuDNN: it knows no kernel for it");
  }
}

// Behind the images there may be more or less padding, as no window is there.
TEST_F(CudaConvolutionTest, PaddingThatNobodyReads) {
  ProductRunner runner;
  ConvShape shape = squareShape(2, 4, 4, 8, 3, 2);
  for (ConvKind kind : allConvKinds)
    for (int64_t high : {0, 1})
      for (ConvLayout layout : allConvLayouts) {
        shape.padsHigh = {high, high};
        checkConvolution(runner, makeConvDesc(kind, DType::F32, shape, layout));
      }
  // No padding is negative that another one does for.
  shape.padsLow = {0, 0};
  shape.padsHigh = {-1, -1};
  shape.image = {9, 9};
  for (ConvKind kind : allConvKinds)
    expect(makeConvDesc(kind, DType::F32, shape),
           "cuDNN has no negative padding");
  shape.image = {10, 10};
  for (ConvKind kind : allConvKinds)
    checkConvolution(runner, makeConvDesc(kind, DType::F32, shape));
}

/// How many numbers the rounding of factors has changed.
double worstOf(bool tf32) {
  ProductRunner runner(DeviceOptions{1, false, tf32});
  ConvDesc desc = makeConvDesc(ConvKind::Forward, DType::F32, small);
  std::vector<ViewData> data = randomArguments(desc), exact = data;
  EXPECT_EQ(llvm::toString(runner.run(desc, data)), "");
  ProductRunner wide;
  EXPECT_EQ(llvm::toString(wide.run(desc, exact)), "");
  double worst = 0;
  for (int64_t i = 0; i < data[2].memory.numElements(); ++i)
    worst = std::max(worst, distance(data[2].memory.getDouble(i),
                                     exact[2].memory.getDouble(i)));
  return worst;
}

TEST_F(CudaConvolutionTest, FactorsAreRoundedOnlyIfTheyMayBe) {
  EXPECT_EQ(worstOf(false), 0);
  EXPECT_GT(worstOf(true), 1e-4);
  EXPECT_LT(worstOf(true), 1e-2);
}

// The heuristic's first is not taken, whose results are others in each run.
TEST_F(CudaConvolutionTest, SumsHaveAnOrder) {
  startSimgpu({{"CUDNN_ENGINES", "1"}});
  ProductRunner runner(DeviceOptions{1, false, /*tf32=*/true});
  for (ConvKind kind : allConvKinds)
    checkConvolution(runner, makeConvDesc(kind, DType::BF16, small));
}

TEST_F(CudaConvolutionTest, EqualOnesHaveOnePlan) {
  ProductRunner runner;
  ConvDesc desc = makeConvDesc(ConvKind::Forward, DType::F16, small);
  checkConvolution(runner, desc);
  uint64_t before = simgpuCounted("cudnnBackendFinalize");
  desc.constantW = true;
  checkConvolution(runner, desc);
  // The pack of the execution.
  EXPECT_EQ(simgpuCounted("cudnnBackendFinalize"), before + 1);
  EXPECT_EQ(simgpuCounted("cudnnBackendExecute"), 2U);
  desc.groups = 2;
  desc.w = TensorDesc::dense(DType::F16, {16, 4, 3, 3});
  checkConvolution(runner, desc);
  EXPECT_GT(simgpuCounted("cudnnBackendFinalize"), before + 2);
}

TEST_F(CudaConvolutionTest, WorkspacesAreKnownBefore) {
  ProductRunner runner;
  for (ConvKind kind : allConvKinds)
    EXPECT_GT(runner.findWorkspace(makeConvDesc(kind, DType::BF16, small)), 0);
  ConvDesc wide = makeConvDesc(ConvKind::Forward, DType::F64, small);
  EXPECT_EQ(llvm::cantFail(runner.device.findWorkspace(wide)), 0);
}

TEST_F(CudaConvolutionTest, PlansAreKept) {
  std::string cache = ::testing::TempDir() + "convolution-plans";
  std::filesystem::remove_all(cache);
  setenv("AXOPT_CACHE", cache.c_str(), 1);
  auto run = [&](bool tf32) {
    startSimgpu();
    ProductRunner runner(DeviceOptions{1, false, tf32});
    checkConvolution(runner,
                     makeConvDesc(ConvKind::Transposed, DType::BF16, small));
    EXPECT_EQ(simgpuCounted("cudnnBackendExecute"), 1U);
    return simgpuCounted("cudnnBackendGetAttribute");
  };
  uint64_t made = run(false);
  // Of a kept one only its workspace is asked for.
  EXPECT_GT(made, 3U);
  EXPECT_EQ(run(false), 1U);
  // To numbers of 16 bits it is all the same.
  EXPECT_EQ(run(true), 1U);
}

/// All of cuDNN that a convolution takes, and the first error.
ErrorDescription runOne(const std::map<std::string, std::string> &settings) {
  startSimgpu(settings);
  ConvDesc desc = makeConvDesc(ConvKind::WeightGradient, DType::F32, small);
  std::vector<ViewData> data = randomArguments(desc);
  ProductRunner runner;
  llvm::Error error = runner.run(desc, data);
  if (!error)
    return {ExitCode::Success, ""};
  return describeError(std::move(error));
}

TEST_F(CudaConvolutionTest, EachCallFails) {
  EXPECT_EQ(runOne({}).message, "");
  uint64_t numCalls = simgpuCounted("cudnn*");
  EXPECT_GT(numCalls, 100U);
  for (int status : {1001, 2000, 3000, 4000, 5000})
    for (uint64_t number = 1; number <= numCalls; ++number) {
      ErrorDescription error =
          runOne({{"FAIL", "cudnn*:" + std::to_string(number) + ":" +
                               std::to_string(status)}});
      std::string call =
          llvm::StringRef(simgpuReported()).split(':').first.str();
      // Nobody gets the errors of destructors, and one plan is as good as
      // another.
      if (error.message.empty())
        continue;
      EXPECT_NE(error.message.find(call + ": CUDNN_STATUS_"), std::string::npos)
          << "call " << number << ", " << call << ": '" << error.message << "'";
      EXPECT_TRUE(error.code == ExitCode::Unsupported ||
                  error.code == ExitCode::RunFailed);
    }
}

TEST_F(CudaConvolutionTest, NothingIsLeftOfIt) {
  {
    ProductRunner runner;
    for (ConvKind kind : allConvKinds)
      checkConvolution(runner, makeConvDesc(kind, DType::F32, small));
  }
  EXPECT_GT(simgpuCounted("cudnnBackendCreateDescriptor"), 0U);
  EXPECT_EQ(simgpuCounted("cudnnBackendCreateDescriptor"),
            simgpuCounted("cudnnBackendDestroyDescriptor"));
  EXPECT_EQ(simgpuCounted("cudnnCreate"), simgpuCounted("cudnnDestroy"));
}

} // namespace
