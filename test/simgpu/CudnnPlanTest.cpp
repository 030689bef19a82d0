//===- CudnnPlanTest.cpp - Attention, as the real cuDNN plans it ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuDNN makes plans for a card that is described, where there is none. So
// whether it has kernels for our graphs shows wherever the library is.
//
//===----------------------------------------------------------------------===//

#include "AttentionDescriptions.h"
#include "CudnnAttentionGraphs.h"
#include "DescribedCard.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sys/stat.h>

using namespace ax;
using namespace ax::rt;
using namespace ax::rt::cuda;

namespace {

class CudnnPlanTest : public DescribedCard {
protected:
  static int64_t numScores(const AttentionDesc &desc) {
    const std::vector<int64_t> &sizes = desc.q.sizes;
    return sizes[0] * sizes[1] * sizes[2] * desc.k.sizes[2];
  }
  /// No matrix of all scores is in memory.
  void checkForwards(const AttentionDesc &desc) { checkForwards(desc, h100); }
  static void checkForwards(const AttentionDesc &desc,
                            const SharedCudnn &card) {
    ASSERT_EQ(findObstacle(desc), "") << toString(desc);
    auto plan = planAttention(card, desc);
    ASSERT_TRUE(bool(plan))
        << toString(desc) << ": " << llvm::toString(plan.takeError());
    constexpr int64_t few = 4096;
    EXPECT_LT((*plan)->getWorkspaceBytes(), std::max(few, numScores(desc)))
        << toString(desc);
  }
  /// The gradient of the scores is in memory, in the type of the factors.
  void checkBackwards(const AttentionGradientDesc &desc) {
    checkBackwards(desc, h100);
  }
  static void checkBackwards(const AttentionGradientDesc &desc,
                             const SharedCudnn &card) {
    ASSERT_EQ(findObstacle(desc), "") << toString(desc);
    auto plan = planAttentionGradient(card, desc, /*nondeterministic=*/false);
    ASSERT_TRUE(bool(plan))
        << toString(desc) << ": " << llvm::toString(plan.takeError());
    EXPECT_GE((*plan)->getWorkspaceBytes(), 2 * numScores(desc.forward))
        << toString(desc);
  }
  void checkBoth(const AttentionDesc &desc, HeadLayout layout) {
    checkForwards(desc);
    checkBackwards(makeGradientDesc(desc, layout));
  }
};

TEST_F(CudnnPlanTest, TheDriverSeesNoCard) {
  EXPECT_EQ(llvm::toString(Driver::load().takeError()),
            "device cuda: CUDA's driver sees no card");
}

TEST_F(CudnnPlanTest, Gpt2) {
  for (HeadLayout layout : {HeadLayout::Heads, HeadLayout::Fused})
    checkBoth(makeAttentionDesc(DType::BF16, {16, 12, 12, 1024, 1024, 64},
                                layout, /*causal=*/true),
              layout);
}

// Alone and beside a mask of keys, as padding is.
TEST_F(CudnnPlanTest, Windows) {
  for (bool isMasked : {false, true})
    for (int64_t keyHeads : {2, 8}) {
      AttentionDesc desc =
          makeAttentionDesc(DType::BF16, {2, 8, keyHeads, 1024, 1024, 128},
                            HeadLayout::Heads, /*causal=*/true);
      desc.window = 256;
      if (isMasked)
        addMask(desc, DType::BF16, {2, 1, 1, 1024});
      checkBoth(desc, HeadLayout::Heads);
    }
}

// There is no gradient of the scores in memory then.
TEST_F(CudnnPlanTest, AnyOrder) {
  for (int64_t keyHeads : {2, 8}) {
    AttentionDesc desc =
        makeAttentionDesc(DType::BF16, {2, 8, keyHeads, 1024, 1024, 128},
                          HeadLayout::Heads, /*causal=*/true);
    auto plan = planAttentionGradient(h100, makeGradientDesc(desc),
                                      /*nondeterministic=*/true);
    ASSERT_TRUE(bool(plan)) << llvm::toString(plan.takeError());
    EXPECT_LT((*plan)->getWorkspaceBytes(), numScores(desc));
  }
}

// All scores are 17 GB in the type of the factors. They are in memory for a
// gradient that has the same bits in each run, and for nothing else.
TEST_F(CudnnPlanTest, LongSequences) {
  AttentionDesc desc =
      makeAttentionDesc(DType::BF16, {1, 32, 32, 16384, 16384, 128},
                        HeadLayout::Heads, /*causal=*/true);
  ASSERT_EQ(findObstacle(desc), "");
  // A number of f32 for each query.
  constexpr int64_t some = 32 * 16384 * 4;
  auto forwards = planAttention(h100, desc);
  ASSERT_TRUE(bool(forwards)) << llvm::toString(forwards.takeError());
  EXPECT_LE((*forwards)->getWorkspaceBytes(), some);
  AttentionGradientDesc gradient = makeGradientDesc(desc);
  auto inAnyOrder =
      planAttentionGradient(h100, gradient, /*nondeterministic=*/true);
  ASSERT_TRUE(bool(inAnyOrder)) << llvm::toString(inAnyOrder.takeError());
  EXPECT_LE((*inAnyOrder)->getWorkspaceBytes(), some);
  checkBackwards(gradient);
}

TEST_F(CudnnPlanTest, LargeHeadsInGroups) {
  checkBoth(makeAttentionDesc(DType::F16, {1, 8, 2, 300, 200, 128}),
            HeadLayout::Heads);
}

TEST_F(CudnnPlanTest, TheLargestHeads) {
  for (bool causal : {false, true})
    checkBoth(makeAttentionDesc(DType::BF16, {1, 4, 2, 256, 256, 256},
                                HeadLayout::Heads, causal),
              HeadLayout::Heads);
}

// Of sizes in between, too.
TEST_F(CudnnPlanTest, LargeHeadsWithMasks) {
  for (int64_t size : {136, 256}) {
    AttentionDesc desc = makeAttentionDesc(
        DType::BF16, {1, 4, 2, 256, 256, size}, HeadLayout::Heads,
        /*causal=*/size == 256);
    addMask(desc, size == 256 ? DType::BF16 : DType::F32, {1, 1, 256, 256});
    desc.givesLogSums = true;
    checkBoth(desc, HeadLayout::Heads);
  }
}

// Code for capability 9.0 runs on newer cards, which have the largest heads
// forwards; backwards it depends on the version of cuDNN.
TEST_F(CudnnPlanTest, OtherCards) {
  for (int version : {800, 1000, 1200}) {
    SharedCudnn card = describeAs(version);
    AttentionDesc desc =
        makeAttentionDesc(DType::BF16, {1, 4, 2, 256, 256, 256});
    addMask(desc, DType::F32, {1, 1, 1, 256});
    checkForwards(desc, card);
    desc = makeAttentionDesc(DType::BF16, {1, 4, 2, 256, 256, 128});
    addMask(desc, DType::BF16, {1, 1, 1, 256});
    checkForwards(desc, card);
    checkBackwards(makeGradientDesc(desc), card);
  }
}

// Rows of masks may begin anywhere. Each shape with one type of two by turns,
// with AX_TEST_ALL with both.
TEST_F(CudnnPlanTest, Masks) {
  size_t number = 0;
  for (const std::vector<int64_t> &shape : std::vector<std::vector<int64_t>>{
           {3, 1, 1, 57}, {1, 1, 57, 57}, {3, 4, 57, 57}, {1, 4, 57, 1}}) {
    bool isWide = number++ % 2 == 0;
    for (DType type : {DType::F32, DType::BF16}) {
      if (!std::getenv("AX_TEST_ALL") && isWide != (type == DType::F32))
        continue;
      AttentionDesc desc =
          makeAttentionDesc(DType::BF16, {3, 4, 2, 57, 57, 64},
                            HeadLayout::Heads, /*causal=*/shape[1] == 1);
      addMask(desc, type, shape);
      desc.givesLogSums = true;
      checkBoth(desc, HeadLayout::Heads);
    }
  }
}

TEST_F(CudnnPlanTest, SizesOfOne) {
  for (const auto &[desc, layout] : sizesOfOne())
    if (layout == HeadLayout::Fused)
      checkBoth(desc, layout);
}

// Each plan takes some 0.4 s.
TEST_F(CudnnPlanTest, AnyTypeLayoutAndGroup) {
  std::vector<LaidAttention> all = everyTypeLayoutAndGroup();
  size_t step = std::getenv("AX_TEST_ALL") ? 3 : 11;
  for (size_t i = 0; i < all.size(); i += step)
    checkBoth(all[i].desc, all[i].layout);
}

TEST_F(CudnnPlanTest, RandomDescriptions) {
  RandomAttention attention(1);
  int count = std::getenv("AX_TEST_ALL") ? 12 : 3;
  for (int i = 0; i < count; ++i) {
    checkForwards(attention.next());
    AttentionDesc desc = attention.next();
    checkBackwards(makeGradientDesc(desc, attention.layout()));
  }
}

// What a plan says of itself is all of it.
TEST_F(CudnnPlanTest, KeptPlansAreTaken) {
  std::filesystem::path folder = ::testing::TempDir() + "cudnn-plans";
  std::filesystem::remove_all(folder);
  AttentionDesc desc =
      makeAttentionDesc(DType::BF16, {16, 12, 12, 1024, 1024, 64},
                        HeadLayout::Heads, /*causal=*/true);
  std::set<uint64_t> made;
  std::vector<int64_t> bytes;
  for (int run = 0; run < 2; ++run) {
    SharedCudnn keeping = llvm::cantFail(
        CudnnHandle::describe(readDescription(), folder.string()));
    auto forwards = planAttention(keeping, desc);
    auto backwards = planAttentionGradient(keeping, makeGradientDesc(desc),
                                           /*nondeterministic=*/false);
    ASSERT_TRUE(forwards && backwards);
    bytes.push_back((*forwards)->getWorkspaceBytes());
    bytes.push_back((*backwards)->getWorkspaceBytes());
    for (const auto &file : std::filesystem::directory_iterator(folder)) {
      struct stat info = {};
      ASSERT_EQ(stat(file.path().c_str(), &info), 0);
      made.insert(info.st_ino);
    }
  }
  // One that was refused would have been written anew.
  EXPECT_EQ(made.size(), 2U);
  EXPECT_EQ(bytes[0], bytes[2]);
  EXPECT_EQ(bytes[1], bytes[3]);
}

TEST_F(CudnnPlanTest, WhatNoKernelIsForIsUnsupported) {
  for (int64_t size : {4, 12}) {
    AttentionDesc desc = makeAttentionDesc(DType::BF16, {2, 4, 2, 5, 5, size});
    expectNoKernel(planAttention(h100, desc));
    expectNoKernel(planAttentionGradient(h100, makeGradientDesc(desc),
                                         /*nondeterministic=*/false));
  }
}

} // namespace
