//===- PackedConvTest.cpp - Our packed convolutions against others --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which of them a device uses depends on the processor; this calls ours.
//
//===----------------------------------------------------------------------===//

#include "PlainReference.h"
#include "Threads.h"
#include "ax/Runtime/VectorKernels.h"

#include <array>

using namespace ax;
using namespace ax::rt;

namespace {

using Case = ConvCase;

/// With weights that are packed once, and in each call; an element of an
/// argument may be poisoned.
void check(ConvDesc desc, int poisoned = -1, double poison = NAN) {
  SCOPED_TRACE(toString(desc));
  const std::vector<ViewData> given = randomArguments(desc, poisoned, poison);
  std::vector<ViewData> reference = runPlain(desc, given);
  for (bool isConstant : {true, false}) {
    std::vector<ViewData> data = given;
    desc.constantW = isConstant;
    PackedWeights packed;
    CpuConstant constant{data[1].memory.data()};
    auto ours = llvm::cantFail(preparePackedConv(desc, constant, packed));
    ASSERT_TRUE(ours);
    EXPECT_NE(ours->readsConstant(), isConstant);
    run(*ours, data);
    expectNear(data.back(), reference.back(), depthOf(desc));
  }
}

class PackedConvTest : public ::testing::Test {
protected:
  void SetUp() override {
    if (!vectorKernels().packedTile)
      GTEST_SKIP() << "this processor has no AVX2";
  }
  void TearDown() override { setNumThreads(1); }
};

TEST_F(PackedConvTest, Images) {
  for (int64_t channels : {1, 3, 16, 20})
    for (int64_t stride : {1, 2})
      for (int64_t dilation : {1, 3})
        check(makeDesc({{2, channels, 9, 11},
                        {33, channels, 3, 3},
                        {stride, stride},
                        {dilation, dilation},
                        {2, 1},
                        {1, 3}}));
}

TEST_F(PackedConvTest, Signals) {
  for (int64_t channels : {1, 5, 32})
    for (int64_t dilation : {1, 5})
      check(makeDesc(
          {{3, channels, 70}, {40, channels, 7}, {3}, {dilation}, {15}, {4}}));
}

TEST_F(PackedConvTest, Volumes) {
  check(makeDesc({{2, 6, 4, 5, 6},
                  {20, 6, 3, 2, 3},
                  {1, 2, 1},
                  {1, 1, 2},
                  {1, 0, 2},
                  {1, 1, 2}}));
}

// Windows that see nothing but padding.
TEST_F(PackedConvTest, FarInThePadding) {
  check(
      makeDesc({{1, 8, 2, 2}, {16, 8, 2, 2}, {1, 1}, {1, 1}, {5, 5}, {5, 5}}));
  check(
      makeDesc({{1, 8, 1, 3}, {16, 8, 1, 3}, {2, 4}, {1, 2}, {0, 9}, {3, 9}}));
}

TEST_F(PackedConvTest, Groups) {
  setNumThreads(2);
  check(makeDesc({{2, 24, 6, 7},
                  {36, 8, 3, 3},
                  {1, 1},
                  {1, 1},
                  {1, 1},
                  {1, 1},
                  /*groups=*/3}));
}

// Of a concatenation, as x and as y.
TEST_F(PackedConvTest, ChannelsOfMore) {
  Case c{{2, 12, 5, 6}, {20, 12, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
  c.moreX = 7;
  c.moreY = 9;
  ConvDesc desc = makeDesc(c);
  desc.hasBias = desc.hasResidual = true;
  check(desc);
}

TEST_F(PackedConvTest, FewColumns) {
  for (int64_t columns : {1, 2, 3, 4})
    // Whole vectors, and not; several blocks of k.
    for (int64_t channels : {4, 16, 48, 528}) {
      Case c{{2, channels, 5, 13},
             {columns, channels, 3, 4},
             {1, 1},
             {1, 1},
             {1, 2},
             {0, 1}};
      ConvDesc desc = makeDesc(c);
      desc.hasBias = true;
      desc.activation = Activation::Tanh;
      check(desc);
      // Residues of which some have runs of whole vectors.
      std::swap(c.w[0], c.w[1]);
      c.kind = ConvKind::Transposed;
      c.strides = {2, 3};
      check(makeDesc(c));
    }
}

// Convolutions that read the same weights in another order, or other ones of
// them first.
TEST_F(PackedConvTest, WeightsPackedAlikeOnlyWhereReadAlike) {
  std::vector<Case> cases{
      {{1, 4, 6, 20}, {3, 4, 2, 4}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
      {{1, 4, 6, 20}, {3, 4, 2, 4}, {1, 1}, {1, 2}, {0, 0}, {0, 0}},
      {{1, 12, 6, 20}, {3, 4, 2, 4}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 3}};
  for (int64_t pad : {0, 1})
    for (int64_t stride : {1, 2}) {
      Case c{{1, 3, 6, 20}, {3, 4, 2, 4}, {1, stride},
             {1, 1},        {0, pad},     {0, pad}};
      c.kind = ConvKind::Transposed;
      cases.push_back(c);
    }
  PackedWeights packed;
  std::vector<std::unique_ptr<CpuOp>> ops;
  ViewData weights(TensorDesc::dense(DType::F32, {3, 4, 2, 4}));
  std::mt19937 random(3);
  weights.fillRandom(random);
  for (const Case &c : cases) {
    ConvDesc desc = makeDesc(c);
    SCOPED_TRACE(toString(desc));
    std::vector<ViewData> data = randomArguments(desc);
    data[1] = weights;
    std::vector<ViewData> reference = runPlain(desc, data);
    ops.push_back(llvm::cantFail(
        preparePackedConv(desc, {weights.memory.data(), 17}, packed)));
    run(*ops.back(), data);
    expectNear(data.back(), reference.back(), depthOf(desc));
  }
}

TEST_F(PackedConvTest, NotANumber) {
  ConvDesc desc =
      makeDesc({{1, 16, 5, 6}, {20, 16, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}});
  desc.hasBias = desc.hasResidual = true;
  for (Activation activation : allActivations)
    for (bool activationLast : {false, true})
      for (int poisoned : {0, 2, 3})
        for (double poison : {NAN, INFINITY, -INFINITY}) {
          desc.activation = activation;
          desc.activationLast = activationLast;
          check(desc, poisoned, poison);
        }
}

TEST_F(PackedConvTest, LinesApart) {
  ConvDesc desc =
      makeDesc({{2, 8, 5, 9}, {16, 8, 3, 3}, {1, 1}, {1, 1}, {0, 0}, {0, 0}});
  desc.y.strides[2] += 16;
  desc.y.strides[0] += 100;
  desc.x.strides[2] += 5;
  desc.x.strides[0] += 50;
  check(desc);
  desc.hasResidual = true;
  check(desc);
}

TEST_F(PackedConvTest, ChannelsFirst) {
  // Few columns, and panels, and several blocks of k.
  for (int64_t columns : {3, 40})
    for (int64_t channels : {16, 80})
      for (bool activationLast : {false, true})
        for (int64_t groups : {1, 2}) {
          ConvDesc desc = makeDesc({{2, channels, 5, 9},
                                    {columns * groups, channels / groups, 3, 3},
                                    {1, 1},
                                    {1, 1},
                                    {1, 1},
                                    {1, 1},
                                    groups});
          desc.y = TensorDesc::dense(DType::F32, desc.y.sizes);
          check(desc);
          desc.x = TensorDesc::dense(DType::F32, desc.x.sizes);
          check(desc);
          std::swap(desc.x.strides[2], desc.x.strides[3]);
          desc.x.strides[2] = 1;
          desc.x.strides[3] = desc.x.sizes[2];
          desc.hasBias = desc.hasResidual = true;
          desc.activation = Activation::Relu;
          desc.activationLast = activationLast;
          check(desc);
        }
}

// Outputs have places of their own, share some, see padding, or are cut off.
TEST_F(PackedConvTest, Transposed) {
  for (auto [window, stride, low, high] : {std::array<int64_t, 4>{2, 2, 0, 0},
                                           {3, 1, 1, 1},
                                           {4, 2, 1, 1},
                                           {4, 2, 0, 3},
                                           {5, 2, 2, 1},
                                           {3, 3, 1, 0},
                                           {7, 3, 0, -2}})
    for (int64_t groups : {1, 3}) {
      Case c{{2, 18, 5, 7}, {18, 20, window, window + 1},      {stride, stride},
             {1, 1},        {low, std::max<int64_t>(high, 0)}, {high, low},
             groups};
      c.kind = ConvKind::Transposed;
      ConvDesc desc = makeDesc(c);
      desc.hasBias = true;
      check(desc);
    }
  Case signal{{3, 24, 30}, {24, 40, 16}, {8}, {1}, {4}, {4}};
  signal.kind = ConvKind::Transposed;
  check(makeDesc(signal));
}

// A part of such an output sees nothing of x.
TEST_F(PackedConvTest, TransposedWithGapsIsRefused) {
  Case c{{1, 16, 5, 5}, {16, 16, 2, 2}, {3, 3}, {1, 1}, {0, 0}, {0, 0}};
  c.kind = ConvKind::Transposed;
  PackedWeights packed;
  std::vector<float> w(16 * 16 * 4);
  EXPECT_FALSE(
      llvm::cantFail(preparePackedConv(makeDesc(c), {w.data()}, packed)));
}

void checkGradient(const Case &c, bool channelsFirst = false) {
  ConvDesc desc = makeDesc(c);
  desc.kind = ConvKind::WeightGradient;
  if (channelsFirst)
    for (TensorDesc *view : {&desc.x, &desc.y})
      *view = TensorDesc::dense(DType::F32, view->sizes);
  SCOPED_TRACE(toString(desc));
  std::vector<ViewData> data = randomArguments(desc), reference = data;
  run(*llvm::cantFail(preparePlainConvWeightGradient(desc)), reference);
  auto ours = llvm::cantFail(preparePackedConvGradient(desc));
  ASSERT_TRUE(ours);
  run(*ours, data);
  expectNear(data.back(), reference.back(),
             desc.y.numElements() / desc.y.sizes[1]);
}

TEST_F(PackedConvTest, WeightGradients) {
  for (int64_t channels : {1, 3, 16, 20})
    for (int64_t columns : {2, 16, 33})
      for (int64_t stride : {1, 2})
        for (bool channelsFirst : {false, true})
          checkGradient({{2, channels, 9, 11},
                         {columns, channels, 3, 2},
                         {stride, 1},
                         {1, stride},
                         {2, 1},
                         {1, 3}},
                        channelsFirst);
  // Several blocks of outputs, lines longer than one, and groups.
  checkGradient({{2, 24, 1100}, {36, 8, 5}, {1}, {2}, {3}, {0}, /*groups=*/3});
  checkGradient({{2, 6, 4, 5, 6},
                 {20, 6, 3, 2, 3},
                 {1, 2, 1},
                 {1, 1, 2},
                 {1, 0, 2},
                 {1, 1, 2}});
  setNumThreads(3);
  checkGradient(
      {{2, 64, 30, 31}, {80, 64, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}});
}

TEST_F(PackedConvTest, Epilogues) {
  for (Activation activation : allActivations)
    for (bool hasBias : {false, true})
      for (bool hasResidual : {false, true})
        for (bool activationLast : {false, hasResidual})
          // One block of k and several, panels that are full and one that is
          // not.
          for (int64_t channels : {8, 80}) {
            ConvDesc desc = makeDesc({{1, channels, 5, 6},
                                      {70, channels, 3, 3},
                                      {1, 1},
                                      {1, 1},
                                      {1, 1},
                                      {1, 1}});
            desc.activation = activation;
            desc.hasBias = hasBias;
            desc.hasResidual = hasResidual;
            desc.activationLast = activationLast;
            check(desc);
          }
}

// Threads have panels, or rows where there are few panels or many rows.
TEST_F(PackedConvTest, Threads) {
  setNumThreads(3);
  for (int64_t columns : {20, 200})
    for (int64_t height : {4, 110})
      check(makeDesc({{1, 64, height, 30},
                      {columns, 64, 3, 3},
                      {1, 1},
                      {1, 1},
                      {1, 1},
                      {1, 1}}));
}

TEST_F(PackedConvTest, ResidualInPlace) {
  ConvDesc desc =
      makeDesc({{1, 16, 4, 4}, {16, 16, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}});
  desc.hasResidual = true;
  PackedWeights packed;
  std::vector<float> x(16 * 16, 1.0f), w(16 * 16 * 9, 2.0f), y(16 * 16, 3.0f);
  auto op = llvm::cantFail(preparePackedConv(desc, {w.data()}, packed));
  auto workspace =
      llvm::cantFail(HostMemory::allocate(op->getWorkspaceBytes()));
  void *addresses[] = {x.data(), nullptr, y.data(), y.data()};
  llvm::cantFail(op->execute(addresses, workspace.getData()));
  EXPECT_EQ(y.front(), 4 * 16 * 2.0f + 3.0f);
  EXPECT_EQ(y[5 * 16], 9 * 16 * 2.0f + 3.0f);
}

TEST_F(PackedConvTest, OthersAreRefused) {
  PackedWeights packed;
  std::vector<double> w(16 * 16 * 9);
  auto refused = [&](const ConvDesc &desc, const void *data) {
    return !llvm::cantFail(preparePackedConv(desc, {data, 0}, packed));
  };
  const ConvDesc good =
      makeDesc({{1, 16, 4, 4}, {16, 16, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}});
  EXPECT_FALSE(refused(good, w.data()));
  ConvDesc desc = good;
  desc.kind = ConvKind::WeightGradient;
  EXPECT_TRUE(refused(desc, w.data()));
  // A copy of x with so many zeros around it would be larger than all else.
  desc = good;
  desc.strides = desc.padsLow = desc.padsHigh = {1 << 30, 1 << 30};
  EXPECT_TRUE(refused(desc, w.data()));
  Case c{{1, 16, 5, 5}, {16, 16, 20, 20}, {9, 9}, {1, 1}, {0, 0}, {0, 0}};
  c.kind = ConvKind::Transposed;
  EXPECT_TRUE(refused(makeDesc(c), w.data()));
  desc = good;
  desc.x.dtype = desc.w.dtype = desc.y.dtype = DType::F64;
  EXPECT_TRUE(refused(desc, w.data()));
}

} // namespace
