//===- ConvTest.cpp - Convolutions on the CPU -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "WindowCases.h"

using namespace ax;
using namespace ax::rt;

namespace {

ConvDesc makeDesc(const Case &c, DType dtype, ConvKind kind, bool last) {
  ConvDesc desc;
  desc.strides = c.strides;
  desc.dilations = c.dilations;
  desc.padsLow = c.padsLow;
  desc.padsHigh = c.padsHigh;
  desc.groups = c.groups;
  desc.kind = kind;
  bool transposed = kind == ConvKind::Transposed;
  std::vector<int64_t> w = c.w, y = c.x;
  if (transposed)
    std::swap(w[0], w[1]);
  y[1] = c.w[0];
  if (transposed) {
    // w is [channels, out channels / groups]
    w[0] = c.x[1];
    w[1] = c.w[0] / c.groups;
  }
  for (size_t d = 0; d < c.strides.size(); ++d) {
    int64_t reach = (c.w[d + 2] - 1) * c.dilations[d] + 1;
    y[d + 2] = transposed
                   ? (c.x[d + 2] - 1) * c.strides[d] + reach - c.padsLow[d] -
                         c.padsHigh[d] +
                         (c.outputPads.empty() ? 0 : c.outputPads[d])
                   : (c.x[d + 2] + c.padsLow[d] + c.padsHigh[d] - reach) /
                             c.strides[d] +
                         1;
  }
  desc.x = image(dtype, c.x, last);
  desc.w = TensorDesc::dense(dtype, w);
  desc.y = image(dtype, y, last);
  return desc;
}

/// Adds every product to where it belongs.
std::vector<double> reference(const ConvDesc &desc,
                              const std::vector<ViewData> &data) {
  bool transposed = desc.kind == ConvKind::Transposed;
  bool ofWeight = desc.kind == ConvKind::WeightGradient;
  size_t spatial = desc.strides.size();
  TensorDesc dense =
      TensorDesc::dense(DType::F64, ofWeight ? desc.w.sizes : desc.y.sizes);
  std::vector<double> sums(static_cast<size_t>(dense.numElements()), 0);
  int64_t inPerGroup = desc.x.sizes[1] / desc.groups;
  int64_t outPerGroup = desc.y.sizes[1] / desc.groups;
  // Index over [batch, in channel of group, out channel of group, group,
  // places of the operand whose places are walked, kernel].
  const TensorDesc &walked = transposed ? desc.x : desc.y;
  std::vector<int64_t> sizes{desc.x.sizes[0], inPerGroup, outPerGroup,
                             desc.groups};
  for (size_t d = 0; d < spatial; ++d)
    sizes.push_back(walked.sizes[d + 2]);
  for (size_t d = 0; d < spatial; ++d)
    sizes.push_back(desc.w.sizes[d + 2]);
  forEachIndex(sizes, [&](const std::vector<int64_t> &i) {
    std::vector<int64_t> x{i[0], i[3] * inPerGroup + i[1]};
    std::vector<int64_t> y{i[0], i[3] * outPerGroup + i[2]};
    std::vector<int64_t> w{transposed ? x[1] : y[1], transposed ? i[2] : i[1]};
    for (size_t d = 0; d < spatial; ++d) {
      int64_t place = i[4 + d], kernel = i[4 + spatial + d];
      int64_t other = place * desc.strides[d] + kernel * desc.dilations[d] -
                      desc.padsLow[d];
      const TensorDesc &otherView = transposed ? desc.y : desc.x;
      if (other < 0 || other >= otherView.sizes[d + 2])
        return;
      x.push_back(transposed ? place : other);
      y.push_back(transposed ? other : place);
      w.push_back(kernel);
    }
    const std::vector<int64_t> &to = ofWeight ? w : y;
    int64_t at = 0;
    for (size_t d = 0; d < to.size(); ++d)
      at += to[d] * dense.strides[d];
    sums[static_cast<size_t>(at)] +=
        data[0].get(x) * data[1].get(ofWeight ? y : w);
  });
  return sums;
}

void check(const ConvDesc &desc, int32_t threads = 1, int poisoned = -1,
           double poison = NAN) {
  std::vector<ViewData> data = randomArguments(desc, poisoned, poison);
  runLibrary(desc, data, threads);
  if (testing::Test::HasFatalFailure())
    return;
  std::vector<double> sums = reference(desc, data);
  size_t at = 0;
  double largest = 0;
  const TensorDesc &result =
      desc.kind == ConvKind::WeightGradient ? desc.w : desc.y;
  forEachIndex(result.sizes, [&](const std::vector<int64_t> &index) {
    double sum = sums[at++];
    if (desc.hasBias)
      sum += data[2].get({index[1]});
    if (!desc.activationLast)
      sum = activate(desc.activation, sum);
    if (desc.hasResidual)
      sum += data[desc.hasBias ? 3 : 2].get(index);
    if (desc.activationLast)
      sum = activate(desc.activation, sum);
    largest = std::max(largest, distance(data.back().get(index), sum));
  });
  EXPECT_LE(largest, 8 * tolerance(result.dtype)) << toString(desc);
}
void checkEveryForm(const Case &c) {
  for (DType type : {DType::F32, DType::BF16, DType::F16, DType::F64})
    for (bool last : {false, true}) {
      ConvDesc desc = makeDesc(c, type, ConvKind::Forward, last);
      check(desc);
      desc.hasBias = true;
      desc.constantW = true;
      desc.activation = Activation::Relu;
      check(desc);
      desc.hasResidual = true;
      desc.activation = Activation::Silu;
      check(desc, 2);
      desc.activationLast = true;
      check(desc);
    }
}

TEST(ConvTest, EveryForm) {
  for (const Case &c : cases)
    checkEveryForm(c);
}

// Of signals and images with places far apart, and of volumes.
TEST(ConvTest, ChannelsByThemselves) {
  const Case depthwise[] = {
      {{1, 24, 40}, {24, 1, 3}, {1}, {8}, {8}, {8}, 24, {}},
      {{2, 18, 12, 11},
       {18, 1, 3, 5},
       {2, 1},
       {8, 9},
       {8, 17},
       {7, 18},
       18,
       {}},
      {{2, 20, 5, 6, 4},
       {20, 1, 3, 2, 3},
       {1, 2, 1},
       {2, 1, 1},
       {2, 0, 1},
       {1, 1, 0},
       20,
       {}},
  };
  for (const Case &c : depthwise)
    checkEveryForm(c);
}

TEST(ConvTest, NarrowFactorsGiveUnroundedSums) {
  for (const Case &c : cases)
    for (DType type : {DType::BF16, DType::F16})
      for (ConvKind kind :
           {ConvKind::Forward, ConvKind::Transposed, ConvKind::WeightGradient})
        for (bool last : {false, true}) {
          ConvDesc desc = makeDesc(c, type, kind, last);
          (kind == ConvKind::WeightGradient ? desc.w : desc.y).dtype =
              DType::F32;
          check(desc);
        }
}

TEST(ConvTest, IntegersOfEightBits) {
  for (const Case &c : cases)
    for (DType x : {DType::I8, DType::U8})
      for (DType w : {DType::I8, DType::U8})
        for (bool last : {false, true}) {
          ConvDesc desc = makeDesc(c, x, ConvKind::Forward, last);
          desc.w.dtype = w;
          desc.y.dtype = DType::I32;
          desc.constantW = last;
          check(desc);
          desc.y.dtype = DType::F32;
          EXPECT_EQ(findFault(desc), "its types do not fit each other");
        }
}

// In f32 such sums would be rounded.
TEST(ConvTest, SumsOfManyIntegers) {
  const Case c{{1, 512, 4, 5}, {16, 512, 3, 3}, {1, 1}, {1, 1},
               {1, 1},         {1, 1},          1,      {}};
  for (DType type : {DType::I8, DType::U8}) {
    ConvDesc desc = makeDesc(c, type, ConvKind::Forward, true);
    desc.w.dtype = DType::I8;
    desc.y.dtype = DType::I32;
    desc.constantW = true;
    std::vector<ViewData> data = randomArguments(desc);
    data[0].fill(type == DType::I8 ? -127 : 255);
    data[1].fill(127);
    runLibrary(desc, data, 1);
    std::vector<double> sums = reference(desc, data);
    size_t at = 0;
    forEachIndex(desc.y.sizes, [&](const std::vector<int64_t> &index) {
      EXPECT_EQ(data[2].get(index), sums[at++]);
    });
  }
}

TEST(ConvTest, ActivationsKeepNaN) {
  // Without padding, whose zeros would be multiplied by the poison or not.
  const Case c{{1, 4, 8, 7}, {6, 4, 3, 3}, {1, 1}, {1, 1},
               {0, 0},       {0, 0},       1,      {}};
  for (DType type : {DType::F32, DType::BF16})
    for (Activation activation : allActivations)
      for (bool activationLast : {false, true})
        for (int argument = 0; argument < 4; ++argument)
          for (double poison : {double(NAN), double(INFINITY)}) {
            ConvDesc desc = makeDesc(c, type, ConvKind::Forward, true);
            desc.hasBias = desc.hasResidual = desc.constantW = true;
            desc.activation = activation;
            desc.activationLast = activationLast;
            check(desc, 1, argument, poison);
          }
}

TEST(ConvTest, Transposed) {
  for (Case c : cases)
    for (bool padded : {false, true})
      for (DType type : {DType::F32, DType::F64})
        for (bool last : {false, true}) {
          if (padded)
            for (int64_t stride : c.strides)
              c.outputPads.push_back(stride - 1);
          ConvDesc desc = makeDesc(c, type, ConvKind::Transposed, last);
          check(desc);
          desc.hasBias = true;
          desc.constantW = true;
          check(desc, 4);
        }
}

// As code for a GPU has them, where the CPU does what that cannot.
TEST(ConvTest, WeightsWithTheirChannelsInnermost) {
  for (const Case &c : cases)
    for (DType type : {DType::F32, DType::BF16, DType::F16})
      for (ConvKind kind : {ConvKind::Forward, ConvKind::Transposed,
                            ConvKind::WeightGradient}) {
        ConvDesc desc = makeDesc(c, type, kind, true);
        desc.w = image(type, desc.w.sizes, true);
        check(desc);
        desc.constantW = kind != ConvKind::WeightGradient;
        check(desc, 2);
      }
}

TEST(ConvTest, FourDimensions) {
  Case c{{1, 2, 3, 4, 3, 2},
         {2, 2, 2, 2, 2, 2},
         {1, 2, 1, 1},
         {1, 1, 1, 1},
         {0, 1, 0, 0},
         {0, 0, 0, 1},
         1,
         {}};
  for (ConvKind kind :
       {ConvKind::Forward, ConvKind::Transposed, ConvKind::WeightGradient})
    for (bool last : {false, true}) {
      ConvDesc desc = makeDesc(c, DType::F32, kind, last);
      check(desc);
      desc.y = image(DType::F32, desc.y.sizes, !last);
      check(desc);
    }
}

TEST(ConvTest, WeightGradient) {
  for (const Case &c : cases)
    for (DType type : {DType::F32, DType::BF16, DType::F16, DType::F64})
      for (bool last : {false, true}) {
        ConvDesc desc = makeDesc(c, type, ConvKind::WeightGradient, last);
        check(desc, last ? 2 : 1);
        desc.y = image(type, desc.y.sizes, !last);
        check(desc);
      }
}

/// Windows, by definition.

} // namespace
