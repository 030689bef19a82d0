//===- CudnnConvolutionPlanTest.cpp - Convolutions of the real cuDNN ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ConvolutionDescriptions.h"
#include "CudnnConvolutionGraphs.h"
#include "DescribedCard.h"

#include <filesystem>

using namespace ax;
using namespace ax::rt;
using namespace ax::rt::cuda;

namespace {

class CudnnConvolutionPlanTest : public DescribedCard {
protected:
  int64_t workspaceOf(const ConvDesc &desc, bool tf32 = false) {
    EXPECT_EQ(findObstacle(desc), "") << toString(desc);
    auto plan = planConvolution(h100, desc, tf32);
    EXPECT_TRUE(bool(plan))
        << toString(desc) << ": " << llvm::toString(plan.takeError());
    return plan ? (*plan)->getWorkspaceBytes() : -1;
  }
  void checkAll(const ConvShape &shape) {
    for (ConvKind kind : allConvKinds)
      for (DType dtype : {DType::F32, DType::F16, DType::BF16})
        for (ConvLayout layout : allConvLayouts)
          workspaceOf(makeConvDesc(kind, dtype, shape, layout));
  }
};

TEST_F(CudnnConvolutionPlanTest, Resnet50) {
  checkAll(squareShape(32, 3, 64, 224, 7, 2));
  checkAll(squareShape(32, 64, 64, 56, 3));
  checkAll(squareShape(32, 128, 128, 56, 3, 2));
  checkAll(squareShape(32, 256, 64, 56, 1));
  checkAll(squareShape(32, 256, 512, 56, 1, 2));
  checkAll(squareShape(32, 512, 512, 7, 3));
}

TEST_F(CudnnConvolutionPlanTest, Groups) {
  checkAll(squareShape(32, 128, 128, 28, 3, 1, 4));
  checkAll(squareShape(8, 96, 96, 56, 3, 2, 96));
  checkAll(squareShape(2, 5, 7, 9, 3));
}

TEST_F(CudnnConvolutionPlanTest, OtherDimensions) {
  checkAll({8, 64, 64, 1, {100}, {3}, {2}, {2}, {2}, {2}});
  checkAll({2,
            16,
            32,
            1,
            {8, 16, 16},
            {3, 3, 3},
            {1, 1, 1},
            {1, 1, 1},
            {1, 1, 1},
            {1, 1, 1}});
  ConvShape shape = squareShape(8, 32, 64, 56, 3, 2);
  shape.padsLow = {0, 0};
  checkAll(shape);
  shape = squareShape(8, 64, 64, 28, 3);
  shape.dilations = shape.padsLow = shape.padsHigh = {2, 2};
  checkAll(shape);
}

// Rounded images and weights of channels last are read as they are.
TEST_F(CudnnConvolutionPlanTest, ChannelsLastNeedNoOtherOrder) {
  constexpr int64_t few = 4096;
  for (ConvKind kind : {ConvKind::Forward, ConvKind::Transposed})
    for (int64_t size : {1, 3}) {
      ConvShape shape = squareShape(32, 64, 64, 56, size);
      EXPECT_LT(workspaceOf(makeConvDesc(kind, DType::BF16, shape)), few);
      EXPECT_GT(
          workspaceOf(makeConvDesc(kind, DType::BF16, shape, {false, false})),
          few);
      // And of f32 without TF32 the other way round.
      EXPECT_GT(workspaceOf(makeConvDesc(kind, DType::F32, shape)), few);
      EXPECT_LT(
          workspaceOf(makeConvDesc(kind, DType::F32, shape, {false, false})),
          few);
      EXPECT_LT(
          workspaceOf(makeConvDesc(kind, DType::F32, shape), /*tf32=*/true),
          few);
    }
}

TEST_F(CudnnConvolutionPlanTest, RandomDescriptions) {
  constexpr int count = 60;
  RandomConvolution convolution(1);
  for (int i = 0; i < count; ++i)
    workspaceOf(convolution.next(), /*tf32=*/i % 2);
}

TEST_F(CudnnConvolutionPlanTest, KeptPlansAreTaken) {
  std::filesystem::path folder = ::testing::TempDir() + "cudnn-convolutions";
  std::filesystem::remove_all(folder);
  SharedCudnn keeping =
      llvm::cantFail(CudnnHandle::describe(readDescription(), folder.string()));
  for (ConvKind kind : allConvKinds) {
    ConvDesc desc =
        makeConvDesc(kind, DType::BF16, squareShape(32, 64, 64, 56, 3));
    auto made = planConvolution(keeping, desc, false);
    ASSERT_TRUE(bool(made)) << llvm::toString(made.takeError());
    auto again = planConvolution(keeping, desc, false);
    ASSERT_TRUE(bool(again)) << llvm::toString(again.takeError());
    EXPECT_EQ((*again)->getWorkspaceBytes(), (*made)->getWorkspaceBytes());
  }
}

TEST_F(CudnnConvolutionPlanTest, SumsOfGradientsAreNotUnrounded) {
  for (ConvKind kind : {ConvKind::Transposed, ConvKind::WeightGradient}) {
    ConvDesc desc =
        makeConvDesc(kind, DType::BF16, squareShape(8, 32, 32, 14, 3));
    (kind == ConvKind::WeightGradient ? desc.w : desc.y).dtype = DType::F32;
    expectNoKernel(planConvolution(h100, desc, false));
  }
}

} // namespace
