//===- AttentionSuite.cpp - What attention on cuda must give --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "AttentionSuite.h"

#include "CpuComparison.h"
#include "CpuLibrary.h"

namespace ax::rt {

namespace {

AttentionDesc inF32(AttentionDesc desc) {
  for (TensorDesc *tensor : {&desc.q, &desc.k, &desc.v, &desc.out, &desc.mask})
    tensor->dtype = DType::F32;
  return desc;
}

AttentionGradientDesc inF32(AttentionGradientDesc desc) {
  desc.forward = inF32(desc.forward);
  for (TensorDesc *tensor : {&desc.gradient, &desc.dq, &desc.dk, &desc.dv})
    tensor->dtype = DType::F32;
  return desc;
}

/// The mask's type and strides, which are 0 where it is repeated.
std::string maskOf(const AttentionDesc &desc) {
  std::string text = "no mask";
  if (desc.hasMask) {
    text = "a mask of " + std::string(toString(desc.mask.dtype)) + ", strides";
    for (int64_t stride : desc.mask.strides)
      text += " " + std::to_string(stride);
  }
  return text + (desc.givesLogSums ? ", sums are given" : "");
}

template <typename Desc>
ExpectedCpuOp prepareOnCpu(const Desc &desc) {
  if constexpr (std::is_same_v<Desc, AttentionDesc>)
    return prepareAttention(desc);
  else
    return prepareAttentionGradient(desc);
}

} // namespace

void checkAttention(ProductRunner &runner, const AttentionDesc &desc,
                    uint32_t seed) {
  ASSERT_EQ(findFault(desc), "") << toString(desc);
  SCOPED_TRACE(maskOf(desc));
  AttentionDesc wide = inF32(desc);
  std::vector<ViewData> data, plain;
  fillBoth(desc, wide, seed, data, plain);
  runOnCpu(prepareOnCpu(wide), plain);
  compareWithCpu(runner, desc, data, plain,
                 data.size() - static_cast<size_t>(numResults(desc)));
}

void checkGradient(ProductRunner &runner, const AttentionGradientDesc &desc,
                   uint32_t seed) {
  ASSERT_EQ(findFault(desc), "") << toString(desc);
  SCOPED_TRACE(maskOf(desc.forward));
  AttentionGradientDesc wide = inF32(desc);
  std::vector<ViewData> data, plain;
  fillBoth(desc, wide, seed, data, plain);
  // What attention gave.
  std::vector<ViewData> forward(plain.begin(), plain.begin() + 3);
  size_t ofSums = 5;
  if (desc.forward.hasMask)
    forward.push_back(plain[ofSums++]);
  size_t ofOut = forward.size();
  forward.push_back(plain[3]);
  bool hasSums = desc.forward.givesLogSums;
  if (hasSums)
    forward.push_back(plain[ofSums]);
  runOnCpu(prepareOnCpu(wide.forward), forward);
  for (auto *given : {&plain, &data}) {
    copyNumbers(forward[ofOut].memory, (*given)[3].memory);
    if (hasSums)
      copyNumbers(forward[ofOut + 1].memory, (*given)[ofSums].memory);
  }
  runOnCpu(prepareOnCpu(wide), plain);
  compareWithCpu(runner, desc, data, plain, data.size() - 3);
}

namespace {

TEST_P(AttentionSuite, RandomDescriptions) {
  ProductRunner runner;
  RandomAttention attention(GetParam().seed);
  for (uint32_t i = 0; i < GetParam().numRandom && !HasFatalFailure(); ++i)
    checkAttention(runner, attention.next(), i);
}

TEST_P(AttentionSuite, RandomGradients) {
  ProductRunner runner;
  RandomAttention attention(GetParam().seed);
  for (uint32_t i = 0; i < GetParam().numRandom && !HasFatalFailure(); ++i) {
    AttentionDesc desc = attention.next();
    checkGradient(runner, makeGradientDesc(desc, attention.layout()), i);
  }
}

// Sums in any order are right, too.
TEST_P(AttentionSuite, RandomGradientsInAnyOrder) {
  DeviceOptions options;
  options.nondeterministic = true;
  ProductRunner runner(options);
  RandomAttention attention(GetParam().seed + 1);
  for (uint32_t i = 0; i < GetParam().numRandom && !HasFatalFailure(); ++i) {
    AttentionDesc desc = attention.next();
    checkGradient(runner, makeGradientDesc(desc, attention.layout()), i);
  }
}

TEST_P(AttentionSuite, EveryTypeLayoutAndGroup) {
  ProductRunner runner;
  for (const auto &[desc, layout] : everyTypeLayoutAndGroup()) {
    checkAttention(runner, desc);
    checkGradient(runner, makeGradientDesc(desc, layout));
  }
}

TEST_P(AttentionSuite, EveryShapeAndTypeOfMasks) {
  ProductRunner runner;
  for (const AttentionDesc &desc : everyShapeAndTypeOfMasks()) {
    checkAttention(runner, desc);
    checkGradient(runner, makeGradientDesc(desc));
  }
}

TEST_P(AttentionSuite, SizesOfOne) {
  ProductRunner runner;
  for (const auto &[desc, layout] : sizesOfOne()) {
    checkAttention(runner, desc);
    checkGradient(runner, makeGradientDesc(desc, layout));
  }
}

} // namespace

} // namespace ax::rt
